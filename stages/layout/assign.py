"""Assign layouts to tensors so that transforms between operators move the fewest bytes.

Works on shapes and names only, without tvm. There are three kinds of operators:

  transposing  convolutions and pools: read the layout of their rule, write the layout that their consumers read
  following    element-wise operators, concatenation, padding, ...: read and write the same layout
  bound        reshape, softmax, fully connected, ...: depend on the order of elements; NHWC only

Following operators without a rule get layouts by a minimum cut (stages.layout.cut) over the bytes to transpose. A
tensor with the same bytes in both layouts (one channel, or one pixel) is never transposed: its transform is a free
reshape.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from stages.ir.tensor_layout import NCHW, NHWC
from stages.layout.cut import Split
from stages.layout.rules import DataLayout, LayoutConfig, Operator, choose, class_of


@dataclass(frozen=True)
class Decision:
    """Layouts of one operator; `data` and `out` are '' without 4-D inputs or outputs.

    why     `rule <n>`, `default`, `inherited` (from the neighbours) or `bound` (the operator can only read NHWC)
    wanted  the layout that the recipe asks for (`Choice`); tensorize keeps to it
    rule    the number of the rule that asks for it
    """

    data: DataLayout | str
    out: DataLayout | str
    why: str
    wanted: str = ""
    rule: int = 0


@dataclass(frozen=True)
class Transform:
    """A copy of tensor `tensor` from layout `source` to `target`, before operator `before`.

    `before` is None for a model output. `moves`: the order of the bytes changes; without it the transform is a reshape.
    """

    tensor: int
    source: DataLayout
    target: DataLayout
    before: int | None
    moves: bool
    reason: str


@dataclass(frozen=True)
class Plan:
    """Layouts of a network.

    decisions   by operator index
    tensors     the layout in which each 4-D tensor is written
    transforms  in order of execution
    """

    decisions: Mapping[int, Decision]
    tensors: Mapping[int, DataLayout]
    transforms: Sequence[Transform]


def same_bytes(shape: Sequence[int]) -> bool:
    """Whether a tensor of this logical (NHWC) shape has the same bytes in NHWC and in NCHW."""
    return NHWC.lies_as(NCHW, shape)


def assign(
    operators: Sequence[Operator],
    shapes: Mapping[int, tuple[int, ...]],
    inputs: Sequence[int],
    outputs: Sequence[int],
    config: LayoutConfig,
    item_bytes: Mapping[int, int] | None = None,
) -> Plan:
    """Assign layouts to the tensors of a network; its inputs and outputs stay NHWC.

    Logical `shapes` and `item_bytes` are by tensor index. Raises StageError if a rule cannot be applied.
    """
    return _Assignment(operators, shapes, inputs, outputs, config, item_bytes or {}).plan()


class _Assignment:
    def __init__(
        self,
        operators: Sequence[Operator],
        shapes: Mapping[int, tuple[int, ...]],
        inputs: Sequence[int],
        outputs: Sequence[int],
        config: LayoutConfig,
        item_bytes: Mapping[int, int],
    ) -> None:
        self.operators, self.shapes, self.inputs, self.outputs = operators, shapes, inputs, outputs
        self.item_bytes = item_bytes
        self.choices = {operator.index: choose(operator, config) for operator in operators}
        self.producer = {tensor: operator for operator in operators for tensor in operator.outputs}
        self.readers: dict[int, list[Operator]] = {}
        for operator in operators:
            for tensor in dict.fromkeys(operator.inputs):
                self.readers.setdefault(tensor, []).append(operator)
        self.reads: dict[int, DataLayout] = {
            index: choice.data for index, choice in self.choices.items() if choice.data is not None
        }

    def plan(self) -> Plan:
        self._resolve()
        written = {tensor: self._written(tensor) for tensor in self.shapes if self._four_d(tensor)}
        decisions = {}
        for operator in self.operators:
            choice = self.choices[operator.index]
            data = self.reads[operator.index] if any(map(self._four_d, operator.inputs)) else ""
            out = next((written[tensor] for tensor in operator.outputs if self._four_d(tensor)), "")
            why = choice.why or "inherited"
            decisions[operator.index] = Decision(data, out, why, choice.wanted, choice.rule)
        return Plan(decisions, written, self._transforms(written))

    def _four_d(self, tensor: int) -> bool:
        return len(self.shapes[tensor]) == 4

    def _resolve(self) -> None:
        """Choose layouts for operators without a rule, such that the fewest bytes are transposed.

        A tensor is transposed unless all its readers agree, and its writer if that must write the layout that it reads.
        Among choices of equal cost, the one with the fewest NCHW operators wins.
        """
        split = Split("NHWC", "NCHW")
        for tensor in filter(self._four_d, self.shapes):
            if same_bytes(self.shapes[tensor]):
                continue
            sides: list[Hashable] = [self.reads.get(op.index, op.index) for op in self.readers.get(tensor, ())]
            source = self.producer.get(tensor)
            if source is None or tensor in self.outputs:
                sides.append("NHWC")
            if source is not None and class_of(source.kind) != "transposing":
                sides.append(self.reads.get(source.index, source.index))
            if any(isinstance(side, int) for side in sides):
                split.bundle(dict.fromkeys(sides), prod(self.shapes[tensor]) * self.item_bytes.get(tensor, 1))
        planar = split.second_side()
        for operator in self.operators:
            self.reads.setdefault(operator.index, "NCHW" if operator.index in planar else "NHWC")

    def _wanted(self, tensor: int) -> list[DataLayout]:
        """Layouts in which the tensor is read."""
        wanted = [self.reads[operator.index] for operator in self.readers.get(tensor, ())]
        return [*wanted, "NHWC"] if tensor in self.outputs else wanted

    def _written(self, tensor: int) -> DataLayout:
        source = self.producer.get(tensor)
        if source is None:
            return "NHWC"
        data = self.reads[source.index]
        if class_of(source.kind) != "transposing":
            return data
        wanted = self._wanted(tensor)
        if not wanted or len(set(wanted)) == 1:
            return wanted[0] if wanted else data
        # One transform is needed in any case: serve the majority of the readers directly.
        planar = wanted.count("NCHW")
        return data if 2 * planar == len(wanted) else "NCHW" if 2 * planar > len(wanted) else "NHWC"

    def _transforms(self, written: Mapping[int, DataLayout]) -> list[Transform]:
        """Transforms, at most one for each tensor, before the first operator that needs it."""
        transforms: dict[int, Transform] = {}
        for operator in self.operators:
            for tensor in operator.inputs:
                if tensor in written and tensor not in transforms and self.reads[operator.index] != written[tensor]:
                    reader = f"{operator.label} reads {self.reads[operator.index]}"
                    transforms[tensor] = self._transform(tensor, written[tensor], operator.index, reader)
        for tensor in self.outputs:
            if written.get(tensor) == "NCHW" and tensor not in transforms:
                transforms[tensor] = self._transform(tensor, "NCHW", None, "the model's output is NHWC")
        return list(transforms.values())

    def _transform(self, tensor: int, source: DataLayout, before: int | None, reader: str) -> Transform:
        target: DataLayout = "NHWC" if source == "NCHW" else "NCHW"
        producer = self.producer.get(tensor)
        if producer is None:
            writer = f"the model's input is {source}"
        elif class_of(producer.kind) == "transposing":
            writer = f"{producer.label} writes {source} for other readers"
        else:
            writer = f"{producer.label} writes {source}, the layout it reads"
        moves = not same_bytes(self.shapes[tensor])
        return Transform(tensor, source, target, before, moves, f"{writer}; {reader}")
