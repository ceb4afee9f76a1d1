"""The reference of networks with operators that LiteRT's reference kernels lack.

The file is cut, in the order of its operators, into partitions. LiteRT runs most partitions, each as a file with all
tensors of the network. Operators that only its optimized kernels have are separate partitions. TFLM's signal operators
are computed by TFLM's interpreter, plug-in operators by their `reference`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np

from stages.ir.arrays import Array
from stages.ir.model_info import ModelInfo, OperatorInfo, TensorInfo
from stages.ir.models.tflite_reader import read
from stages.ir.operators.declaration import CUSTOM
from stages.ir.operators.operation import Operation, listed
from stages.ir.operators.table import OPERATORS, plugin_operators
from stages.ir.reference.interpreter import Reference, is_optimized, litert
from stages.ir.reference.refusal import RunError
from stages.ir.reference.tflm import SignalReference, is_tflm, tflm
from stages.support.lazy import schema
from stages.support.messages import escape
from stages.support.messages.operator_error import operator_label
from stages.support.messages.stage_error import StageError

_ASSIGN = "ASSIGN_VARIABLE"


@dataclass(frozen=True)
class Partition:
    """Neighbouring operators that one interpreter computes.

    model    their file, b'' for an operator that LiteRT does not have
    inputs   tensors, by number, that they read and other operators write
    outputs  tensors that they write and other operators read
    """

    operators: tuple[OperatorInfo, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    model: bytes = b""


class Network(Protocol):
    """An ONNX network in the file: its own reference, with some methods of `Reference`."""

    @property
    def described(self) -> str:
        """Name of the interpreter for messages."""

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Return the outputs of one inference."""

    def reset(self) -> None:
        """Give state tensors their initial values."""

    def has(self, index: int) -> bool:
        """Return whether the last run computed this tensor of the file."""

    def tensor(self, index: int) -> Array:
        """Return a tensor of the file from the last run."""


def litert_has(operator: OperatorInfo) -> bool:
    """Whether LiteRT has the operator.

    It has neither custom operators nor operators that only Firmline defines.
    """
    if operator.op.startswith(CUSTOM):
        return False
    declared = OPERATORS.get(operator.op)
    return declared is None or declared.litert.reference is None or bool(declared.litert.misjudged)


def litert_computes(operator: OperatorInfo, info: ModelInfo) -> bool:
    """Whether LiteRT's result of the operator is correct.

    False for operators that LiteRT lacks, and for types that its kernel misreads.
    """
    if not litert_has(operator):
        return False
    misjudged = OPERATORS[operator.op].litert.misjudged if operator.op in OPERATORS else {}
    inputs = dict(enumerate(operator.inputs))
    return not any(
        info.tensors[inputs[at]].dtype in types for at, types in misjudged.items() if inputs.get(at, -1) >= 0
    )


def partitions(model: bytes, info: ModelInfo, networks: Sequence[Partition] = ()) -> list[Partition]:
    """Return the partitions of a file, in order. `networks` are those from ONNX.

    A file that LiteRT runs as it is has one partition, the file itself.
    """
    if _is_whole(info) and not networks:
        return [Partition(info.operators, info.inputs, info.outputs, model)]
    of_onnx = {operator.index: network for network in networks for operator in network.operators}
    cut: list[Partition] = []
    for network, neighbours in groupby(info.operators, lambda op: of_onnx.get(op.index)):
        cut += [network] if network is not None else _cut(model, info, neighbours)
    return cut


def _cut(model: bytes, info: ModelInfo, neighbours: Iterator[OperatorInfo]) -> list[Partition]:
    cut: list[Partition] = []
    for (runs_in_litert, _), group in groupby(neighbours, lambda op: (litert_computes(op, info), is_optimized(op))):
        operators = tuple(group)
        for members in (operators,) if runs_in_litert else ((operator,) for operator in operators):
            inputs, outputs = _ends(members, info)
            data = file_with(model, members, inputs, outputs) if runs_in_litert else b""
            cut.append(Partition(members, inputs, outputs, data))
    return cut


def _is_whole(info: ModelInfo) -> bool:
    """Whether LiteRT runs the file as it is, with one set of kernels."""
    judged = all(litert_computes(operator, info) for operator in info.operators)
    return judged and len(set(map(is_optimized, info.operators))) < 2


def _ends(operators: Sequence[OperatorInfo], info: ModelInfo) -> tuple[tuple[int, ...], tuple[int, ...]]:
    written = {index for operator in operators for index in operator.outputs}
    read_here = {index for operator in operators for index in operator.inputs if index >= 0}
    later = {index for operator in info.operators if operator not in operators for index in operator.inputs}
    read_only = read_here - written
    inputs = sorted(i for i in read_only if info.tensors[i].data is None and not info.tensors[i].variable)
    return tuple(inputs), tuple(sorted(written & (later | set(info.outputs)))) or tuple(sorted(written))


def file_with(model: bytes, operators: Sequence[OperatorInfo], inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
    """Return a TFLite file of these operators only.

    Its list of operator codes has no others, because LiteRT looks up every code.
    """
    import flatbuffers

    model_table = schema.ModelT.InitFromObj(schema.Model.GetRootAs(model, 0))
    graph = model_table.subgraphs[0]
    graph.operators = [graph.operators[operator.index] for operator in operators]
    codes = sorted({operator.opcodeIndex for operator in graph.operators})
    model_table.operatorCodes = [model_table.operatorCodes[code] for code in codes]
    for operator in graph.operators:
        operator.opcodeIndex = codes.index(operator.opcodeIndex)
    graph.inputs, graph.outputs = (np.asarray(ends, dtype=np.int32) for ends in (inputs, outputs))
    model_table.subgraphs, model_table.signatureDefs, model_table.metadata = [graph], None, None
    builder = flatbuffers.Builder(len(model) + 65536)
    builder.Finish(model_table.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def run_plug_in(operator: OperatorInfo, info: ModelInfo, tensor: Callable[[int], Array]) -> Sequence[Array]:
    """Return the outputs of a plug-in operator's `reference`, followed by its new state.

    tensor  returns the value of an input tensor by number

    Raises StageError for an output of another shape or type than in the file, and if a plug-in raises.
    """
    operation, declared = Operation.of(operator, info), OPERATORS[operator.op]
    assert declared.litert.reference is not None
    arrays = [None if operand is None else tensor(operand.index) for operand in operation.inputs]
    subject = f"the reference of {operator_label(operator.index, operator.op)} in {computed_by(operator.op)}"
    try:
        results = declared.litert.reference(operation, *arrays)
    except Exception as error:
        if operator.op not in plugin_operators().by:
            raise
        raise StageError(f"{subject} fails: {type(error).__name__}: {escape.line(str(error))}") from error
    for operand, array in zip(operation.outputs, results[: len(operation.outputs)], strict=True):
        if array.shape != operand.shape or str(array.dtype) != operand.dtype:
            what, expected = f"{array.dtype}{listed(array.shape)}", f"{operand.dtype}{listed(operand.shape)}"
            raise StageError(f"{subject} returns {what}, but the file declares {expected}")
    return results


class PartitionedReference:
    """The reference of a file in partitions, with the methods of `Reference`."""

    def __init__(
        self, model: bytes, *, name: str = "model", networks: Sequence[tuple[Partition, Network]] = ()
    ) -> None:
        """Load `model`; its ONNX `networks` have references of their own.

        `of_onnx`: their operators' numbers.
        """
        self.info: ModelInfo = read(model, name)
        self.name, self.networks, self.model = name, networks, model
        self.of_onnx = frozenset(operator.index for partition, _ in networks for operator in partition.operators)
        self._rest = [operator for operator in self.info.operators if operator.index not in self.of_onnx]
        own = {id(partition): network for partition, network in networks}
        self._partitions: list[tuple[Partition, Reference | Network | None]] = [
            (partition, own.get(id(partition)) or (Reference(partition.model, name=name) if partition.model else None))
            for partition in partitions(model, self.info, [partition for partition, _ in networks])
        ]
        self._signals = {op.index: SignalReference(op, self.info) for op in self.info.operators if is_tflm(op.op)}
        self._values: dict[int, Array] = {}
        self._kept: dict[int, Array] = {}
        self.inputs: tuple[TensorInfo, ...] = tuple(self.info.tensors[index] for index in self.info.inputs)
        self.outputs: tuple[TensorInfo, ...] = tuple(self.info.tensors[index] for index in self.info.outputs)

    @property
    def described(self) -> str:
        """The reference's name in reports.

        `LiteRT 2.3.0 BUILTIN_REF for 4 of 5 operators, plugins/operators/gate.py for 1 x CUSTOM:Gate`.
        """
        total = len(self.info.operators)
        counts = {network.described: 0 for _, network in self.networks}
        for partition, network in self.networks:
            counts[network.described] += len(partition.operators)
        others = [f"{described} for {count} of {total} operators" for described, count in counts.items()]
        names = [op.op for op in self._rest if not litert_computes(op, self.info) or is_optimized(op)]
        for reference in dict.fromkeys(map(computed_by, names)):
            kinds = list(dict.fromkeys(name for name in names if computed_by(name) == reference))
            count = sum(map(names.count, kinds))
            which = f"{count} x {kinds[0]}" if len(kinds) == 1 else f"{count} of {total} operators"
            others.append(f"{reference} for {which}")
        count = len(self._rest) - len(names)
        litert_part = [f"{litert()} for {count} of {total} operators"] if count else []
        return ", ".join([*litert_part, *others])

    def run(self, inputs: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
        """Run once and return the outputs; `inputs` as for `Reference.run`."""
        arrays = [inputs[tensor.name] for tensor in self.inputs] if isinstance(inputs, Mapping) else list(inputs)
        self._values = {**self._beginnings(), **self._kept, **dict(zip(self.info.inputs, arrays, strict=True))}
        for partition, reference in self._partitions:
            if reference is None:
                self._compute(partition.operators[0])
                continue
            reference.run([self._values[index] for index in partition.inputs])
            indices = (*_written(partition), *_kept(partition, self.info))
            self._values |= {index: reference.tensor(index) for index in indices if reference.has(index)}
        return [self.tensor(index) for index in self.info.outputs]

    def reset(self) -> None:
        """Reset the state, as `Reference.reset`."""
        self._kept = {}
        for _, reference in self._partitions:
            if reference is not None:
                reference.reset()
        for signal in self._signals.values():
            signal.reset()

    def _beginnings(self) -> dict[int, Array]:
        """Return the reset state of operators that LiteRT lacks, without ONNX networks.

        The first value of a variable, or zeros.
        """
        states: dict[int, Array] = {}
        for operator in self._rest:
            for at in () if litert_computes(operator, self.info) else OPERATORS[operator.op].tensors.state:
                state = self.info.tensors[operator.inputs[at]]
                zero = int(state.zero_point[0]) if state.dtype == "int8" and state.zero_point.size else 0
                states.setdefault(state.index, np.full(state.shape, zero, state.dtype))
            if operator.op == _ASSIGN and operator.inputs[2:]:
                states[operator.inputs[0]] = self.info.tensors[operator.inputs[2]].values()
        return states

    def _compute(self, operator: OperatorInfo) -> None:
        if (signal := self._signals.get(operator.index)) is not None:
            arrays = signal.run([self.tensor(tensor.index) for tensor in signal.inputs])
            self._values.update(zip(operator.outputs, arrays, strict=True))
            return
        results = run_plug_in(operator, self.info, self.tensor)
        for at, array in zip(OPERATORS[operator.op].tensors.state, results[len(operator.outputs) :], strict=False):
            self._kept[operator.inputs[at]] = self._values[operator.inputs[at]] = array
        self._values.update(zip(operator.outputs, results, strict=False))

    def has(self, index: int) -> bool:
        """Whether the tensor has a value: of the last run, or a constant's."""
        return index in self._values or self.info.tensors[index].data is not None

    def tensor(self, index: int) -> Array:
        """Return a tensor after the last run, or a constant."""
        if index in self._values:
            return self._values[index]
        if self.info.tensors[index].data is None:
            raise RunError(f"tensor {index} of {self.name} has no value")
        return self.info.tensors[index].values()

    def computed(self) -> dict[int, Array]:
        """Return every tensor that an operator wrote, as `Reference.computed`.

        ONNX networks lack some.
        """
        written = (index for operator in self.info.operators for index in operator.outputs)
        return {index: self.tensor(index) for index in written if self.has(index)}


def reference_of(model: bytes, *, name: str = "model") -> Reference | PartitionedReference:
    """Return the reference of a file: LiteRT alone if it has every operator."""
    info = read(model, name)
    return Reference(model, name=name) if _is_whole(info) else PartitionedReference(model, name=name)


def _written(partition: Partition) -> list[int]:
    return [index for operator in partition.operators for index in operator.outputs]


def _kept(partition: Partition, info: ModelInfo) -> list[int]:
    """Return the variable tensors of a partition, which LiteRT keeps between runs."""
    read_here = [index for operator in partition.operators for index in operator.inputs if index >= 0]
    return [index for index in read_here if info.tensors[index].variable]


def computed_by(op: str) -> str:
    """Return what computes an operator that the reference kernels lack, for messages."""
    if OPERATORS[op].litert.optimized:
        return litert("BUILTIN")
    if is_tflm(op):
        return tflm()
    return plugin_operators().by[op].shown if op in plugin_operators().by else "its formula"
