"""MUL, with broadcasting."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.cortex_m.kernels.arm_dsp.base import CLAMP, clamps
from stages.backends.cortex_m.kernels.arm_dsp.rounding import requantization
from stages.backends.cortex_m.kernels.arm_dsp.rows import ROWS, Rows, layer, rows_of, why_not_rows
from stages.backends.kernels.eight_bit import SUFFIX, Range, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Operand
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

FIELDS = Structure("arm_dsp_mul", (*ROWS.fields, "zero0", "zero1", "doubled", "rounder", *CLAMP))


class Mul(Kernel):
    """MUL: int16 products, requantized by two multiplications."""

    name = "arm_dsp.mul_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"mul"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("mul.c",)
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := not_eight_bit(view) or why_not_rows(view):
            return bad
        try:
            factors(view)
        except ValueError as error:
            return str(error)
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        rows = mul_rows(view)
        zero0, zero1 = (_halves(-view.op.zero_points[number]) for number in rows.order)
        doubled, rounder = factors(view)
        scale = {"zero0": zero0, "zero1": zero1, "doubled": doubled, "rounder": rounder}
        return {"fields": FIELDS.of({**rows.fields, **scale, **clamps(view)})}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        op, rows = view.op, mul_rows(view)

        def scaled(x: Any) -> Any:
            product = (widen(x[0]) - op.zero_points[0]) * (widen(x[1]) - op.zero_points[1])
            return output(view, requantize(product, op.output_multiplier, op.output_shift, op.rounding))

        function = f"arm_dsp_mul_{'each' if rows.steps == (1, 1) else 'one'}_{SUFFIX[view.outputs[0].dtype]}"
        return layer(view, rows, function, [Operand("fields", FIELDS.shape, "int32")], scaled)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, as measured.

        7.5 per element (6.2 where one operand repeats), 20 per run, 6 per element at its end.
        """
        rows, y = mul_rows(view), view.outputs[0]
        runs = y.elements / rows.run.extent
        element_cost = 7.5 if rows.steps == (1, 1) else 6.2
        return element_cost * y.elements + runs * (20 + 6 * (rows.run.extent % 4)) + 60


def mul_rows(view: LayerView) -> Rows:
    """Return the layer's rows; the first operand advances along a run."""
    rows = rows_of(view, 0)
    return rows if rows.steps[0] else rows_of(view, 1)


def factors(view: LayerView) -> tuple[int, int]:
    """Return the output's doubled multiplier and its rounder.

    Raises ValueError if no short rounding is exact.
    """
    op = view.op
    bounds = np.iinfo(view.inputs[0].dtype)
    ends = [(int(bounds.min) - zero, int(bounds.max) - zero) for zero in op.zero_points]
    products = [a * b for a in ends[0] for b in ends[1]]
    result = requantization(
        np.array([op.output_multiplier]),
        np.array([op.output_shift]),
        Range(np.array([min(products)]), np.array([max(products)])),
        op.rounding,
        long=False,
    )
    return int(result.scale[0, 0]), int(result.scale[0, 1])


def _halves(value: int) -> int:
    """Repeat a 16-bit value in both halves of an int32."""
    word = (value & 0xFFFF) * 0x10001
    return word - (1 << 32) if word >= 1 << 31 else word
