"""RESIZE_BILINEAR of int8."""

from stages.backends.kernels.resize import HalvingResize
from stages.backends.targets.spec import Target


class ArmResize(HalvingResize):
    """Bilinear resize with half sums of 16-bit lanes (SHADD16)."""

    name = "arm_dsp.resize_bilinear_s8"
    row_alignment = 1
    estimate_error = 1.25
    function = "arm_dsp_resize_bilinear_s8"
    prices = (4.8, 3.7, 22.0)
    parts = 1.6

    def group(self, target: Target) -> int:
        return 4
