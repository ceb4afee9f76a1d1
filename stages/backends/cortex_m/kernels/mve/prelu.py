"""PRELU with broadcast slopes."""

from stages.backends.cortex_m.kernels.mve.rounding import requantization
from stages.backends.kernels.eight_bit import Range
from stages.backends.kernels.prelu import TablePrelu
from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView
from stages.support.lazy import np

FIELDS = ("zero_point0", "zero_point1", "multiplier", "rounder", "zero_point", "low", "high")


class MvePrelu(TablePrelu):
    """PRELU, eight elements at a time."""

    name = "mve.prelu"
    row_alignment = 1
    estimate_error = 1.25
    sources = ("prelu.S",)
    function = "mve_prelu"
    structure = Structure.of_header("mve_prelu", __file__, "prelu.h")
    elements, instructions, left, call = 8, 26.0, 4.0, 27.0

    def factors(self, view: LayerView, products: Range) -> tuple[int, int]:
        multiplier, shift = (np.array([values[1]], np.int32) for values in (view.op.multipliers, view.op.shifts))
        result = requantization(multiplier, shift, products.size, view.op.rounding, lowered=True)
        if result.mode != "lowered":
            raise ValueError(f"a product shift of {int(shift[0])} is not supported")
        return int(multiplier[0]), int(result.rounders[0])
