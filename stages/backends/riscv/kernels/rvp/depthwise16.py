"""Depthwise convolution of 16-bit activations, one register of channels at a time."""

from stages.backends.kernels.depthwise16 import Depthwise16, Prices16
from stages.backends.kernels.lanes16 import Lanes
from stages.backends.targets.spec import Target


class RvpDepthwise16(Depthwise16):
    """Depthwise convolution of int16 with KMABB and KMATT."""

    name = "rvp.depthwise16"
    estimate_error = 1.25
    sources = ("depthwise16.c",)
    function = "rvp_depthwise16"
    prices = Prices16(75.0, 32.0, 19.0, 7.2, 40.0, 11.0, 19.0, 5.0, 3.0)

    def lanes(self, target: Target) -> Lanes:
        group = target.word_bits // 16
        return Lanes(group=group, taps=2, inner=group, apart=2, outer=0)

    def is_in_place(self, channels: int, target: Target) -> bool:
        """Return whether pixels are read in place; a lane is two channels."""
        return channels % 2 == 0
