"""ADD, SUB and MUL, with broadcasting."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.broadcast import elementwise
from stages.backends.kernels.tir.strides import broadcast
from stages.backends.riscv.kernels.rvv.scaling import SCALE, scale_fields, twice, why_not_scale, why_not_shift
from stages.backends.riscv.kernels.rvv.turns import turns
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

_GEOMETRY = ("rows", "run", "row0", "row1", "step0", "step1")
_INPUTS = ("zero_point0", "zero_point1")
_OUTPUT = ("zero_point", "low", "high")
_LARGEST = 255  # magnitude of an input less its zero point


class _Elementwise(Kernel):
    """Rows along which an input advances or repeats one value.

    turn  instructions of an iteration
    """

    row_alignment = 1
    estimate_error = 1.25
    sources = ("elementwise.S",)
    in_place = True
    structure: ClassVar[Structure]
    turn: ClassVar[float]

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view) or self.why_not_scales(view.op)

    @abstractmethod
    def why_not_scales(self, op: Any) -> str:
        """Return why the kernel cannot scale the layer's values, '' if it can."""

    @abstractmethod
    def scales(self, op: Any) -> dict[str, int]:
        """Return the fields of all scales."""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, axes = view.op, broadcast(view)
        geometry = (axes.rows.extent, axes.run.extent, *axes.rows.strides[1:], *axes.run.strides[1:])
        output = (op.output_zero_point, op.act_min, op.act_max)
        names = (*_GEOMETRY, *_INPUTS, *_OUTPUT)
        values = dict(zip(names, (*geometry, *_zero_points(view), *output), strict=True))
        return {"fields": self.structure.of(values | self.scales(op))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        strided = "" if _is_dense(view) else "strided_"
        function = f"{self.function(view.op)}_{strided}{SUFFIX[view.inputs[0].dtype]}"
        return elementwise(view, function, self.structure.shape)

    def function(self, op: Any) -> str:
        """Return the C function without steps and type."""
        return f"rvv_{op.op}"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts. A row takes 10 besides, a call 70."""
        axes = broadcast(view)
        turn = self.turn + (0 if _is_dense(view) else 4)
        return axes.calls * (axes.rows.extent * (turns(target, axes.run.extent, 4) * turn + 10) + 70)


class Add(_Elementwise):
    """Sums and differences: three requantizations per element."""

    name = "rvv.add"
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    ops: ClassVar[frozenset[str]] = frozenset({"add", "sub"})
    structure = Structure(
        "rvv_add", (*_GEOMETRY, *_INPUTS, *(f"{n}{i}" for i in range(2) for n in SCALE), *SCALE[1:], *_OUTPUT)
    )
    turn = 35.0

    def why_not_scales(self, op: Any) -> str:
        if max(*op.shifts, op.output_shift) > 0:
            return "a scale of more than 1 is not supported"
        sizes = why_not_scale(2 * _LARGEST << op.left_shift, op.output_multiplier, op.output_shift)
        return sizes or next(filter(None, map(why_not_shift, op.shifts)), "")

    def scales(self, op: Any) -> dict[str, int]:
        fields = scale_fields(op.output_multiplier, op.output_shift)
        del fields["left"]
        for number in range(2):
            scale = scale_fields(op.multipliers[number], op.shifts[number], str(number))
            scale[f"left{number}"] += op.left_shift
            fields |= scale
        return fields


class Mul(_Elementwise):
    """MUL."""

    name = "rvv.mul"
    ops: ClassVar[frozenset[str]] = frozenset({"mul"})
    structure = Structure("rvv_mul", (*_GEOMETRY, *_INPUTS, *SCALE, *_OUTPUT))
    turn = 26.0

    def why_not_scales(self, op: Any) -> str:
        return why_not_scale(_LARGEST * _LARGEST, op.output_multiplier, op.output_shift)

    def function(self, op: Any) -> str:
        return "rvv_mul_once" if _rounds_by_shift(op) else "rvv_mul"

    def scales(self, op: Any) -> dict[str, int]:
        multiplier = twice(op.output_multiplier) if _rounds_by_shift(op) else op.output_multiplier
        return scale_fields(multiplier, op.output_shift)


def _rounds_by_shift(op: Any) -> bool:
    """Return whether a product is rounded only by its right shift."""
    return bool(op.rounds_once) and op.output_shift < 0


def _zero_points(view: LayerView) -> tuple[int, int]:
    first, second = view.op.zero_points
    return int(first), int(second)


def _is_dense(view: LayerView) -> bool:
    return broadcast(view).run.strides[1:] == (1, 1)
