"""PRELU with broadcast slopes."""

from stages.backends.cortex_m.kernels.arm_dsp.rounding import requantization
from stages.backends.kernels.eight_bit import Range
from stages.backends.kernels.prelu import TablePrelu
from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView
from stages.support.lazy import np

FIELDS = ("zero_point0", "zero_point1", "doubled", "rounder", "zero_point", "low", "high")


class Prelu(TablePrelu):
    """PRELU, one element at a time."""

    name = "arm_dsp.prelu"
    row_alignment = 1
    estimate_error = 1.25
    sources = ("prelu.c",)
    function = "arm_dsp_prelu"
    structure = Structure.of_header("arm_dsp_prelu", __file__, "prelu.h")
    elements, instructions, call = 1, 16.0, 34.0

    def factors(self, view: LayerView, products: Range) -> tuple[int, int]:
        multiplier, shift = (np.array([values[1]]) for values in (view.op.multipliers, view.op.shifts))
        result = requantization(multiplier, shift, products, view.op.rounding, long=False)
        return int(result.scale[0, 0]), int(result.scale[0, 1])
