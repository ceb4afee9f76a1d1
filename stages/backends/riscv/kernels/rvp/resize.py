"""RESIZE_BILINEAR of int8."""

from typing import Any

from stages.backends.kernels.resize import HalvingResize
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class RvpResize(HalvingResize):
    """Bilinear resize with half sums of 16-bit lanes (RADD16)."""

    name = "rvp.resize_bilinear_s8"
    row_alignment = 1
    estimate_error = 1.5
    function = "rvp_resize_bilinear_s8"
    prices = (3.6, 3.4, 28.0)
    parts = 2.0
    units = 1.6

    def group(self, target: Target) -> int:
        return target.word_bits // 8

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions; a register of RV64 holds twice as many channels."""
        return super().cost(view, params, target) * 32 / target.word_bits
