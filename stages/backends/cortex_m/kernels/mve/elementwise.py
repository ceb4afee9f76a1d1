"""ADD, SUB and MUL, with broadcasting.

The reference scales both inputs of a sum to twice the larger scale, in Q20, and adds. For the input with the larger
scale this is exactly (x - zero_point) << 19, as its real multiplier is 1/2. The other input and the sum are scaled.
Layers of int16 shift by 15 and 14 instead, and have no zero points.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.cortex_m.kernels.mve.base import MveKernel
from stages.backends.cortex_m.kernels.mve.rounding import requantization
from stages.backends.kernels.eight_bit import HALF, SUFFIX, shifted_input
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.sixteen_bit import why_not_sixteen
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.broadcast import elementwise
from stages.backends.kernels.tir.strides import broadcast
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.support.lazy import np

if TYPE_CHECKING:
    from stages.backends.cortex_m.kernels.mve.rounding import Requantization

VECTOR = 8  # elements
GEOMETRY = ("rows", "whole", "rest", "row0", "row1", "repeat")  # of elementwise.S


def geometry(view: LayerView, first: int) -> dict[str, int]:
    """Return the geometry fields of two inputs; x0 is input number `first`."""
    axes = broadcast(view, first)
    vectors, rest = divmod(axes.run.extent, VECTOR)
    repeat = {(1, 1): 0, (0, 1): 1, (1, 0): 2}[axes.run.strides[1], axes.run.strides[2]]
    element_bytes = view.outputs[0].bytes // view.outputs[0].elements
    row0, row1 = (stride * element_bytes for stride in axes.rows.strides[1:])
    values = (axes.rows.extent, vectors, rest, row0, row1, repeat)
    return dict(zip(GEOMETRY, values, strict=True))


def why_not_geometry(view: LayerView) -> str:
    """Return why rows cannot be computed, '' if they can.

    An input must have the order of the output.
    """
    steps = broadcast(view).run.strides[1:]
    return "" if steps in ((1, 1), (0, 1), (1, 0)) else "an input has another element order than the output"


_OUTPUT = ("multiplier", "rounder", "zero_point", "low", "high")
# Of elementwise.S
ADD = Structure("mve_add_fields", (*GEOMETRY, "zero_point0", "zero_point1", "multiplier1", "rounder1", *_OUTPUT))
MUL = Structure("mve_mul_fields", (*GEOMETRY, "zero_point0", "zero_point1", *_OUTPUT))
LEFT_SHIFT = {"int8": 20, "uint8": 20, "int16": 15}
_ALMOST_ONE = (1 << 31) - 1
_LARGEST = {"int8": 255 * 255, "uint8": 255 * 255, "int16": 1 << 30}  # product of two inputs less their zero points


class _Elementwise(MveKernel):
    """Eight elements at a time, in rows along which an input advances or repeats one value."""

    sources = ("elementwise.S",)
    in_place = True
    structure: ClassVar[Structure]
    vector: ClassVar[float]  # instructions for eight elements

    def why_not_operator(self, view: LayerView) -> str:
        return self.why_not_arithmetic(view) or why_not_geometry(view)

    @abstractmethod
    def why_not_arithmetic(self, view: LayerView) -> str:
        """Return why the kernel cannot scale the layer's values, '' if it can."""

    def first(self, view: LayerView) -> int:
        """Return the number of the input that is the C function's x0."""
        return 0

    @abstractmethod
    def fields(self, view: LayerView) -> dict[str, int]:
        """Return the fields after the geometry."""

    @abstractmethod
    def function(self, view: LayerView) -> str:
        """Return the C function."""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        values = geometry(view, self.first(view)) | self.fields(view)
        return {"fields": self.structure.of(values)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return elementwise(view, self.function(view), self.structure.shape, self.first(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        Vectors, the rest of a row as one more vector plus 6, 20 per row, 55 per call.
        """
        axes = broadcast(view, self.first(view))
        vectors, rest = divmod(axes.run.extent, VECTOR)
        row = vectors * self.vector + (self.vector + 6 if rest else 0) + 20
        return axes.calls * (axes.rows.extent * row + 55)


class Add(_Elementwise):
    """Sums and differences where one input has the larger scale."""

    name = "mve.add_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"add", "sub"})
    structure = ADD
    vector = 35.0

    def why_not_arithmetic(self, view: LayerView) -> str:
        op = view.op
        if not op.rounds_twice or op.left_shift != LEFT_SHIFT[view.outputs[0].dtype]:
            return f"the layer shifts by {op.left_shift} bits or rounds once"
        number = shifted_input(view)
        if number < 0:
            return "no input has the larger scale (sub: the first input must have it)"
        if op.shifts[1 - number] > -1 and (op.multipliers[1 - number], op.shifts[1 - number]) != (HALF, 0):
            return "an input is scaled by more than 1/2"
        return "" if op.output_shift < 0 else f"an output shift of {op.output_shift} is not supported"

    def first(self, view: LayerView) -> int:
        return shifted_input(view)

    def function(self, view: LayerView) -> str:
        return f"mve_{view.op.op}_{SUFFIX[view.outputs[0].dtype]}"

    def fields(self, view: LayerView) -> dict[str, int]:
        """Return the fields of a sum.

        A scale of 1/2 is (2^31 - 1, -1): the multiplication preserves every value below 2^30, and the shift drops a
        zero.
        """
        op, shifted = view.op, shifted_input(view)
        other = 1 - shifted
        multiplier, shift = op.multipliers[other], op.shifts[other]
        if shift == 0:
            multiplier, shift = _ALMOST_ONE, -1
        return {
            "zero_point0": op.zero_points[shifted],
            "zero_point1": op.zero_points[other],
            "multiplier1": multiplier,
            "rounder1": 1 << (31 + shift),
            "rounder": 1 << (31 + op.output_shift),
            **_output_fields(op),
        }


class Mul(_Elementwise):
    """MUL of 8-bit tensors."""

    name = "mve.mul_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"mul"})
    structure = MUL
    vector = 17.0

    def why_not_arithmetic(self, view: LayerView) -> str:
        try:
            self.scaling(view)
        except ValueError:
            return f"an output shift of {view.op.output_shift} is not supported"
        return ""

    def scaling(self, view: LayerView) -> Requantization:
        """Return the output scaling of products.

        Raises ValueError if rounding.py has no exact mode.
        """
        op = view.op
        multiplier, shift = (np.array([value], np.int32) for value in (op.output_multiplier, op.output_shift))
        return requantization(multiplier, shift, np.array([_LARGEST[view.outputs[0].dtype]]), op.rounding)

    def function(self, view: LayerView) -> str:
        return f"mve_mul_{self.scaling(view).mode}_{SUFFIX[view.outputs[0].dtype]}"

    def fields(self, view: LayerView) -> dict[str, int]:
        op = view.op
        return {
            "zero_point0": op.zero_points[0],
            "zero_point1": op.zero_points[1],
            "rounder": int(self.scaling(view).rounders[0]),
            **_output_fields(op),
        }


class _Sixteen(_Elementwise):
    """Base of the kernels for int16 tensors, which have no zero points."""

    bits = 16

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_sixteen(view) or self.why_not_operator(view)

    def why_not_operator(self, view: LayerView) -> str:
        points = (*view.op.zero_points, view.op.output_zero_point)
        return f"zero points {points}; this kernel is for 0" if any(points) else super().why_not_operator(view)


class Add16(_Sixteen, Add):
    """ADD and SUB of int16."""

    name = "mve.add_s16"
    vector = 32.0


class Mul16(_Sixteen, Mul):
    """MUL of int16."""

    name = "mve.mul_s16"
    vector = 14.0


def _output_fields(op: Any) -> dict[str, int]:
    return {
        "multiplier": op.output_multiplier,
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
    }
