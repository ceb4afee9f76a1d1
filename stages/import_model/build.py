"""A TFLite file to a Relax module: one private function per operator, called one after the other by `main`."""

from __future__ import annotations

from math import prod
from typing import Any

import tflite
from tvm import IRModule, relax

from stages.base import StageError
from stages.import_model.converter import FLOAT, QUANTIZED, Converter, Unsupported
from stages.import_model.hybrid import OPERATORS as HYBRID
from stages.import_model.hybrid import is_hybrid
from stages.models.tflite_reader import ModelInfo, OperatorInfo, TensorInfo
from stages.relax_module import Step, build_main, shorten

# Operators whose arithmetic on bytes is defined by scales; the others also move or compare bytes as they are.
_SCALED = frozenset({
    "ADD", "CONV_2D", "DEPTHWISE_CONV_2D", "DEQUANTIZE", "FULLY_CONNECTED", "L2_NORMALIZATION", "LOGISTIC", "MEAN",
    "MUL", "QUANTIZE", "SOFTMAX", "SUB", "TANH",
})  # fmt: skip
_LARGEST_TENSOR = 2**31  # bytes: offsets in emitted loops are 32 bits with a sign
ITEM_BYTES = {"float32": 4, "float64": 8, "int16": 2, "int32": 4, "int64": 8}
DATA_TYPES = ("float32", "int8", "uint8", "int16", "int32", "int64", "bool")


def build_module(data: bytes, info: ModelInfo) -> IRModule:
    """The module for the TFLite file `data` whose checked contents are `info`.

    `main` has the attributes firmline.inputs and firmline.outputs, tensor indices in the file. Raises StageError naming
    the operator and its tensors when one cannot be imported.
    """
    _check_whole(info)
    converter = Converter(tflite.Model.GetRootAs(data, 0), info)
    builder = relax.BlockBuilder()
    steps = []
    for operator in info.operators:
        _check(operator, info)
        if converter.fold(operator):
            continue
        name = f"op{operator.index:03d}_{operator.op.lower()}"
        function, parameters = _convert(converter, operator, name)
        if not parameters:
            raise _error(operator, info, "computes a constant", "Fold constants when exporting the model.")
        steps.append(Step(builder.add_func(function, name), _names(parameters), _names(operator.outputs)))

    computed = {name for step in steps for name in step.results} | set(_names(info.inputs))
    for index in info.outputs:
        if f"t{index}" not in computed:
            raise StageError(f"output {info.tensors[index].name!r} of the model is a constant: there is nothing to run")
    inputs = {f"t{index}": converter.type(index) for index in info.inputs}
    facts = {"firmline.inputs": list(info.inputs), "firmline.outputs": list(info.outputs)}
    return build_main(builder, inputs, steps, _names(info.outputs), facts)


def _names(indices: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"t{index}" for index in indices)


def _convert(converter: Converter, operator: OperatorInfo, name: str) -> tuple[relax.Function, tuple[int, ...]]:
    info = converter.info
    try:
        function, parameters = converter.convert(operator, name)
    except Unsupported as error:
        raise _error(operator, info, str(error)) from None
    except Exception as error:  # TVM raises anything: AssertionError, KeyError, InternalError from C++
        reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
        raise _error(operator, info, f"cannot be converted by TVM's front end: {reason[0]}") from error
    facts: dict[str, Any] = {
        "firmline.index": operator.index,
        "firmline.op": operator.op,
        "firmline.name": info.tensors[operator.outputs[0]].name,
        "firmline.inputs": list(parameters),
        "firmline.outputs": list(operator.outputs),
    }
    return function.with_attrs(facts), parameters


def _check_whole(info: ModelInfo) -> None:
    if info.subgraphs > 1:
        raise StageError(
            f"the model has {info.subgraphs} subgraphs; control flow is not supported",
            hint="Export it without while, if and call operators.",
        )
    if not info.operators or not info.inputs:
        raise StageError("the model has no operators" if not info.operators else "the model has no inputs")


def _check(operator: OperatorInfo, info: ModelInfo) -> None:
    """Raises StageError for an operator, type or shape that no later stage could do anything with."""
    if operator.op not in FLOAT:
        raise _error(operator, info, "is not supported", f"Supported: {', '.join(sorted(FLOAT))}.")
    tensors = [info.tensors[index] for index in (*operator.inputs, *operator.outputs) if index >= 0]
    for tensor in tensors:
        if tensor.data is None and tensor.dtype not in DATA_TYPES:
            raise _error(operator, info, f"has the type {tensor.dtype} in {tensor.name!r}")
        if any(size <= 0 for size in tensor.shape):
            hint = "Export the model with fixed shapes."
            raise _error(operator, info, f"has the dynamic shape {list(tensor.shape)} in {tensor.name!r}", hint)
        if prod(tensor.shape) * ITEM_BYTES.get(tensor.dtype, 1) >= _LARGEST_TENSOR:
            size = f"{tensor.dtype}{list(tensor.shape)}"
            raise _error(operator, info, f"does not fit any target: {shorten(tensor.name)!r} is {size}, 2 GB or more")
        if operator.op in _SCALED and not is_hybrid(operator, info):
            _check_quantization(operator, info, tensor)
    if operator.op not in QUANTIZED and any(tensor.scale.size for tensor in tensors):
        raise _error(operator, info, "is supported for float32 only, not quantized")
    if operator.op in HYBRID:
        first, weights = (info.tensors[index] for index in operator.inputs[:2])
        mixed = (first.dtype == "float32") != (weights.dtype == "float32")
        if mixed and not is_hybrid(operator, info):
            hint = "Export with full integer quantization, or all in float32."
            raise _error(operator, info, f"has {first.dtype} data and {weights.dtype} weights", hint)


def _check_quantization(operator: OperatorInfo, info: ModelInfo, tensor: TensorInfo) -> None:
    if tensor.dtype not in ("int8", "uint8") or (tensor.scale.size and tensor.scale.all()):
        return
    lacks = "a scale of 0" if tensor.scale.size else "no quantization"
    found = f"tensor {tensor.index} {shorten(tensor.name)!r} is {tensor.dtype} but has {lacks}"
    raise _error(operator, info, f"cannot be computed: {found}", "Quantize the model anew.")


def _error(operator: OperatorInfo, info: ModelInfo, what: str, hint: str = "") -> StageError:
    """operator 3 (CONV_2D) 'block/conv' from 'input', 'weights': `what`."""
    inputs = ", ".join(repr(shorten(info.tensors[index].name)) for index in operator.inputs if index >= 0)
    outputs = ", ".join(repr(shorten(info.tensors[index].name)) for index in operator.outputs)
    return StageError(f"operator {operator.index} ({operator.op}) {what}\n  {inputs} -> {outputs}", hint=hint)
