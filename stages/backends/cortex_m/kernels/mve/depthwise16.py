"""Depthwise convolution of 16-bit activations, eight channels at a time."""

from stages.backends.kernels.depthwise16 import Depthwise16, Prices16
from stages.backends.kernels.lanes16 import Lanes
from stages.backends.targets.spec import Target


class MveDepthwise16(Depthwise16):
    """Depthwise convolution of int16 with VMULLB and VMULLT."""

    name = "mve.depthwise16"
    estimate_error = 1.25
    sources = ("depthwise16.c",)
    function = "mve_depthwise16"
    clips = True
    prices = Prices16(90.0, 40.0, 3.0, 8.0, by_lanes=1.5)

    def lanes(self, target: Target) -> Lanes:
        return Lanes(group=8, taps=1, inner=8, apart=1, outer=0)
