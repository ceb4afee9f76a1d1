"""The oracle of networks with operators that LiteRT's reference kernels lack: those before and after, another there.

The file is cut, in the order of its operators, into parts that LiteRT runs, each a file of its own with the tensors of
the whole, and operators that a plug-in declares with a `reference`. What LiteRT has among its usual kernels alone is a
part of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo, TensorInfo, read
from stages.ir.operators.declaration import CUSTOM
from stages.ir.operators.operation import Operation, listed
from stages.ir.operators.table import OPERATORS, outside
from stages.ir.reference.interpreter import Array, Reference, is_optimized, litert
from stages.ir.reference.refusal import RunError
from stages.support.messages import escape
from stages.support.messages.operator_error import called
from stages.support.messages.stage_error import StageError

_ASSIGN = "ASSIGN_VARIABLE"


@dataclass(frozen=True)
class Part:
    """Neighbouring operators; `model` is their file, b'' for one that LiteRT does not know.

    inputs and outputs are the tensors, by number, that they read from before and that somebody reads afterwards.
    """

    operators: tuple[OperatorInfo, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    model: bytes = b""


def is_known(operator: OperatorInfo) -> bool:
    """Whether LiteRT has the operator: not custom ones, nor those that stand for what it has in another form."""
    if operator.op.startswith(CUSTOM):
        return False
    declared = OPERATORS.get(operator.op)
    return declared is None or declared.reference is None or bool(declared.misjudged)


def is_judged(operator: OperatorInfo, info: ModelInfo) -> bool:
    """Whether LiteRT says what the operator gives: not of those it lacks, nor of types that its kernel misreads."""
    if not is_known(operator):
        return False
    misjudged = OPERATORS[operator.op].misjudged if operator.op in OPERATORS else {}
    inputs = dict(enumerate(operator.inputs))
    return not any(
        info.tensors[inputs[at]].dtype in types for at, types in misjudged.items() if inputs.get(at, -1) >= 0
    )


def parts(model: bytes, info: ModelInfo) -> list[Part]:
    """The parts of a file, in order. A file that LiteRT knows whole is one part, the file itself."""
    if _is_whole(info):
        return [Part(info.operators, info.inputs, info.outputs, model)]
    found: list[Part] = []
    for (known, _), group in groupby(info.operators, lambda one: (is_judged(one, info), is_optimized(one))):
        operators = tuple(group)
        for some in (operators,) if known else ((operator,) for operator in operators):
            inputs, outputs = _ends(some, info)
            data = file_of(model, some, inputs, outputs) if known else b""
            found.append(Part(some, inputs, outputs, data))
    return found


def _is_whole(info: ModelInfo) -> bool:
    """Whether LiteRT runs the file as it is, with one set of kernels."""
    judged = all(is_judged(operator, info) for operator in info.operators)
    return judged and len(set(map(is_optimized, info.operators))) < 2


def _ends(operators: Sequence[OperatorInfo], info: ModelInfo) -> tuple[tuple[int, ...], tuple[int, ...]]:
    written = {index for operator in operators for index in operator.outputs}
    read_here = {index for operator in operators for index in operator.inputs if index >= 0}
    later = {index for operator in info.operators if operator not in operators for index in operator.inputs}
    given = read_here - written
    inputs = sorted(i for i in given if info.tensors[i].data is None and not info.tensors[i].variable)
    return tuple(inputs), tuple(sorted(written & (later | set(info.outputs)))) or tuple(sorted(written))


def file_of(model: bytes, operators: Sequence[OperatorInfo], inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
    """The operators as a file: LiteRT looks up every code that a file lists, so it lists theirs only."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    made = schema.ModelT.InitFromObj(schema.Model.GetRootAs(model, 0))
    graph = made.subgraphs[0]
    graph.operators = [graph.operators[operator.index] for operator in operators]
    codes = sorted({operator.opcodeIndex for operator in graph.operators})
    made.operatorCodes = [made.operatorCodes[code] for code in codes]
    for operator in graph.operators:
        operator.opcodeIndex = codes.index(operator.opcodeIndex)
    graph.inputs, graph.outputs = (np.asarray(ends, dtype=np.int32) for ends in (inputs, outputs))
    made.subgraphs, made.signatureDefs, made.metadata = [graph], None, None
    builder = flatbuffers.Builder(len(model) + 65536)
    builder.Finish(made.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def computed(operator: OperatorInfo, info: ModelInfo, tensor: Callable[[int], Array]) -> Sequence[Array]:
    """What the `reference` of an operator gives, its outputs and then its state; `tensor` has what it reads.

    Raises StageError for an output of another shape or type than the file has, and for what a plug-in raises.
    """
    operation, declared = Operation.of(operator, info), OPERATORS[operator.op]
    assert declared.reference is not None
    arrays = [None if one is None else tensor(one.index) for one in operation.inputs]
    said = f"the reference of {called(operator.index, operator.op)} in {judge_of(operator.op)}"
    try:
        made = declared.reference(operation, *arrays)
    except Exception as error:
        if operator.op not in outside().by:
            raise
        raise StageError(f"{said} fails: {type(error).__name__}: {escape.line(str(error))}") from error
    for one, array in zip(operation.outputs, made[: len(operation.outputs)], strict=True):
        if array.shape != one.shape or str(array.dtype) != one.dtype:
            what, wanted = f"{array.dtype}{listed(array.shape)}", f"{one.dtype}{listed(one.shape)}"
            raise StageError(f"{said} gives {what}; its output is {wanted}")
    return made


class PartedReference:
    """As `Reference`, part by part; `described` says who judges what."""

    def __init__(self, model: bytes, *, name: str = "model") -> None:
        self.info: ModelInfo = read(model, name)
        self.name = name
        self._parts = [
            (part, Reference(part.model, name=name) if part.model else None) for part in parts(model, self.info)
        ]
        self._values: dict[int, Array] = {}
        self._kept: dict[int, Array] = {}
        self.inputs: tuple[TensorInfo, ...] = tuple(self.info.tensors[index] for index in self.info.inputs)
        self.outputs: tuple[TensorInfo, ...] = tuple(self.info.tensors[index] for index in self.info.outputs)

    @property
    def described(self) -> str:
        """`LiteRT 2.3.0 BUILTIN_REF for 4 of 5 operators, plugins/operators/gate.py for 1 x CUSTOM:Gate`."""
        total = len(self.info.operators)
        names = [op.op for op in self.info.operators if not is_judged(op, self.info) or is_optimized(op)]
        theirs = [f"{judge_of(name)} for {names.count(name)} x {name}" for name in dict.fromkeys(names)]
        ours = [f"{litert()} for {total - len(names)} of {total} operators"] if len(names) < total else []
        return ", ".join([*ours, *theirs])

    def run(self, inputs: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
        """Runs once and returns the outputs; `inputs` as for `Reference.run`."""
        given = [inputs[tensor.name] for tensor in self.inputs] if isinstance(inputs, Mapping) else list(inputs)
        self._values = {**self._beginnings(), **self._kept, **dict(zip(self.info.inputs, given, strict=True))}
        for part, reference in self._parts:
            if reference is None:
                self._compute(part.operators[0])
                continue
            order = [self._values[tensor.index] for tensor in reference.inputs]
            reference.run(order)
            self._values |= {index: reference.tensor(index) for index in (*_written(part), *_kept(part, self.info))}
        return [self.tensor(index) for index in self.info.outputs]

    def reset(self) -> None:
        """As `Reference.reset`."""
        self._kept = {}
        for _, reference in self._parts:
            if reference is not None:
                reference.reset()

    def _beginnings(self) -> dict[int, Array]:
        """What operators that LiteRT does not judge keep, after a reset: a variable's first value, or real zeros."""
        found: dict[int, Array] = {}
        for operator in self.info.operators:
            for at in () if is_judged(operator, self.info) else OPERATORS[operator.op].state:
                state = self.info.tensors[operator.inputs[at]]
                zero = int(state.zero_point[0]) if state.dtype == "int8" and state.zero_point.size else 0
                found.setdefault(state.index, np.full(state.shape, zero, state.dtype))
            if operator.op == _ASSIGN and operator.inputs[2:]:
                found[operator.inputs[0]] = self.info.tensors[operator.inputs[2]].values()
        return found

    def _compute(self, operator: OperatorInfo) -> None:
        made = computed(operator, self.info, self.tensor)
        for at, array in zip(OPERATORS[operator.op].state, made[len(operator.outputs) :], strict=False):
            self._kept[operator.inputs[at]] = self._values[operator.inputs[at]] = array
        self._values.update(zip(operator.outputs, made, strict=False))

    def has(self, index: int) -> bool:
        """Whether the tensor has a value: that of the last run, or a constant's."""
        return index in self._values or self.info.tensors[index].data is not None

    def tensor(self, index: int) -> Array:
        """A tensor as the last run left it, or a constant."""
        if index in self._values:
            return self._values[index]
        if self.info.tensors[index].data is None:
            raise RunError(f"tensor {index} of {self.name} has no value")
        return self.info.tensors[index].values()

    def computed(self) -> dict[int, Array]:
        """As `Reference.computed`."""
        return {index: self.tensor(index) for operator in self.info.operators for index in operator.outputs}


def reference_of(model: bytes, *, name: str = "model") -> Reference | PartedReference:
    """The oracle of a file: LiteRT alone where it knows every operator."""
    info = read(model, name)
    return Reference(model, name=name) if _is_whole(info) else PartedReference(model, name=name)


def _written(part: Part) -> list[int]:
    return [index for operator in part.operators for index in operator.outputs]


def _kept(part: Part, info: ModelInfo) -> list[int]:
    """The variable tensors of a part, which LiteRT keeps from one run to the next."""
    read_here = [index for operator in part.operators for index in operator.inputs if index >= 0]
    return [index for index in read_here if info.tensors[index].variable]


def judge_of(op: str) -> str:
    """Who says what an operator gives that the reference kernels lack."""
    if OPERATORS[op].optimized:
        return litert("BUILTIN")
    return outside().by[op].shown if op in outside().by else "its formula"
