"""Which types LiteRT itself computes each operator in: tried, with made models.

`python -m tests.tflm.litert_types > stages/ir/operators/litert_types.json` writes the data of
docs/reference/operators.md.
A case of the operator (`cases/`), or a plain one where it has none, gets tensors of each type. LiteRT's reference
kernels run it in a process that may end.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from stages.ir.models.operators import build
from stages.ir.models.spec import OpModel
from stages.ir.models.tflite_writer import BuildError
from stages.ir.operators.declaration import Operator
from stages.ir.operators.table import OPERATORS
from stages.ir.reference.interpreter import Reference
from stages.ir.reference.refusal import RunError
from tests.support.variables import Streaming
from tests.tflm.case import Case, Port, files, load, model

TYPES = ("int8", "uint8", "int16", "float32", "int32", "int64", "bool")
_QUANTIZED = {"int8": (0.5, 0), "uint8": (0.5, 128), "int16": (0.5, 0)}
# What an output may have to be quantized with: as its input, or with all of the range of a function.
_OUTPUTS = (None, (1 / 256, -128), (1 / 256, 0), (1 / 128, 0), (1 / 128, 128), (1 / 32768, 0))
_BIAS = (0.25, 0)  # of input and weights
_ALONE = {
    "SVDF": {"shape": [16], "out_channels": 4},
    "UNIDIRECTIONAL_SEQUENCE_LSTM": {"shape": [3, 16], "out_channels": 4},
}
_VERSIONS = (1, 2, 3, 4)
_WEIGHTS = {"float32": ("float32", "float32"), "uint8": ("uint8", "int32"), "int16": ("int8", "int64")}


def supported(name: str) -> list[str]:
    """The types of the operator's data with which LiteRT computes some case of it."""
    if name in _ALONE:
        models = {dtype: OpModel(op=OPERATORS[name].kind, dtype=dtype, **_ALONE[name]) for dtype in ("int8", "float32")}
        return [dtype for dtype, spec in models.items() if _survives(build(spec))]
    if name in ("READ_VARIABLE", "ASSIGN_VARIABLE"):
        return [dtype for dtype in TYPES if _survives(_variable(dtype))]
    cases = list(_cases(OPERATORS[name]))
    return [dtype for dtype in TYPES if any(_tried(case, dtype) for case in cases)]


def _variable(dtype: str) -> bytes:
    """A model that gives what it was given before."""
    b, quant = Streaming(), _QUANTIZED.get(dtype)
    x = b.input("x", (4,), dtype, *(quant or ()))
    handle = b.resource("last", np.zeros(4, dtype), quant)
    before = b.read(handle, (4,), dtype, quant)
    b.assign(handle, x)
    b.output(before)
    return b.build()


def _cases(operator: Operator) -> Iterator[Case]:
    """One for each type that the cases of the operator have, else one of its own."""
    name = operator.name.lower()
    if name in files():
        found: dict[str, Case] = {}
        for case in load(name):
            if not case.impossible and case.data:
                found.setdefault(_data_type(case), case)
        yield from list(found.values())[:3]
    yield from _PLAIN.get(operator.name, ())
    if operator.tensors.inputs[0] == 1 and operator.name not in _PLAIN:
        port = _port("float32", (1, 2, 2, 4))
        yield Case(operator.name, "plain", (port,), (port,), operator.table.name if operator.table else "")
    if operator.tensors.inputs[0] == 2 and not operator.tensors.indices and operator.name not in _PLAIN:
        port = _port("float32", (1, 2, 2, 4))
        yield Case(operator.name, "plain", (port, port), (port,), operator.table.name if operator.table else "")


def _port(dtype: str, shape: tuple[int, ...], *values: int) -> Port:
    array = np.array(values or np.ones(shape), dtype).reshape(shape)
    return Port(dtype, shape, (), (), 0, constant=bool(values), variable=False, values=(array,))


def _plain(name: str, inputs: Sequence[Port], shape: tuple[int, ...], table: str = "", **options: int) -> Case:
    """A case with one output, or as many as it is split into."""
    outputs = (_port("float32", shape),) * options.get("numSplits", 1)
    return Case(name, "plain", tuple(inputs), outputs, table, options)


_IMAGE, _SCALAR = _port("float32", (1, 2, 2, 4)), _port("float32", ())
_AXIS, _PADS = _port("int32", (1,), 1), _port("int32", (4, 2), *[1] * 8)
_PLAIN = {
    case.operator: (case,)
    for case in (
        _plain("ADD_N", [_IMAGE, _IMAGE], (1, 2, 2, 4)),
        _plain("DEPTH_TO_SPACE", [_IMAGE], (1, 4, 4, 1), "DepthToSpaceOptions", blockSize=2),
        _plain("EMBEDDING_LOOKUP", [_AXIS, _port("float32", (2, 4))], (1, 4)),
        _plain("EXPAND_DIMS", [_IMAGE, _port("int32", (1,), 0)], (1, 1, 2, 2, 4)),
        _plain(
            *("ONE_HOT", [_port("int32", (2,)), _port("int32", (), 3), _SCALAR, _SCALAR], (2, 3), "OneHotOptions"),
            axis=-1,
        ),
        _plain("PAD", [_IMAGE, _PADS], (3, 4, 4, 6)),
        _plain("PADV2", [_IMAGE, _PADS, _port("float32", (1,), 1)], (3, 4, 4, 6)),
        _plain("REDUCE_ANY", [_IMAGE, _AXIS], (1, 2, 4), "ReducerOptions"),
        _plain("REDUCE_PROD", [_IMAGE, _AXIS], (1, 2, 4), "ReducerOptions"),
        _plain("RESHAPE", [_IMAGE, _port("int32", (2,), 4, 4)], (4, 4)),
        _plain(
            *("RESIZE_NEAREST_NEIGHBOR", [_IMAGE, _port("int32", (2,), 4, 4)], (1, 4, 4, 4)),
            table="ResizeNearestNeighborOptions",
        ),
        _plain("SELECT", [_port("bool", (1, 2, 2, 4)), _IMAGE, _IMAGE], (1, 2, 2, 4)),
        _plain("SLICE", [_IMAGE, _port("int32", (4,), 0, 0, 0, 1), _port("int32", (4,), 1, 1, 2, 2)], (1, 1, 2, 2)),
        _plain("SPACE_TO_DEPTH", [_IMAGE], (1, 1, 1, 16), "SpaceToDepthOptions", blockSize=2),
        _plain("SPLIT", [_port("int32", (1,), 3), _IMAGE], (1, 2, 2, 2), "SplitOptions", numSplits=2),
        _plain("CONCATENATION", [_IMAGE, _IMAGE], (1, 2, 2, 8), "ConcatenationOptions", axis=3),
        _plain("TILE", [_IMAGE, _port("int32", (4,), 1, 1, 2, 1)], (1, 2, 4, 4)),
    )
}


def _data_type(case: Case) -> str:
    declared = OPERATORS[case.operator]
    rest = {*declared.tensors.indices, *declared.tensors.apart}
    return next(port.type for at, port in enumerate(case.inputs) if port is not None and at not in rest)


def _tried(case: Case, dtype: str) -> bool:
    """Whether LiteRT runs the case with data of that type, whatever its output is quantized with."""
    own = dtype if dtype in _QUANTIZED else None
    for version, output in product(_VERSIONS, _OUTPUTS if own else (None,)):
        try:
            data = model([replace(_retyped(case, dtype, output), version=version)])
        except (BuildError, ValueError, IndexError):
            continue
        if _survives(data):
            return True
    return False


def _retyped(case: Case, dtype: str, output: tuple[float, int] | None) -> Case:
    declared, before = OPERATORS[case.operator], _data_type(case)
    weighted = dict(zip(declared.weights.operands[1:], _WEIGHTS.get(dtype, ("int8", "int32")), strict=True))

    def changed(at: int, port: Port | None) -> Port | None:
        if port is None or at in declared.tensors.indices or at in declared.tensors.apart:
            return port
        if declared.weights.own and at in weighted:
            bias = dtype in _QUANTIZED and at == declared.weights.operands[2]
            return _with_type(port, weighted[at], _BIAS if bias else None)
        return _with_type(port, dtype, None) if port.type == before else port

    inputs = tuple(changed(at, port) for at, port in enumerate(case.inputs))
    made = {"DEQUANTIZE": "float32", "QUANTIZE": "int8"}.get(case.operator, dtype)
    outputs = tuple(_with_type(port, made, output) if port.type == before else port for port in case.outputs)
    return replace(case, inputs=inputs, outputs=outputs)


def _with_type(port: Port, dtype: str, quantized: tuple[float, int] | None) -> Port:
    scale = quantized or _QUANTIZED.get(dtype)
    values = tuple(np.clip(np.nan_to_num(value), 0, 3).astype(dtype) for value in port.values)
    scales, points = ((scale[0],), (scale[1],)) if scale else ((), ())
    return replace(port, type=dtype, scales=scales, zero_points=points, axis=0, values=values)


def _survives(data: bytes) -> bool:
    """Whether LiteRT loads and runs a file, in a child that says so by its exit code."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        reference = Reference(data)
        reference.run([np.ones(tensor.shape, tensor.dtype) for tensor in reference.inputs])
    except (RunError, ValueError, RuntimeError):
        os._exit(1)
    os._exit(0)


def main(names: Sequence[str]) -> str:
    """The file: a line for each operator."""
    lines = [f"  {json.dumps(name)}: {json.dumps(supported(name))}" for name in names]
    return "{\n" + ",\n".join(lines) + "\n}"


if __name__ == "__main__":
    print(main(list(OPERATORS)))
