"""Depthwise convolution of 16-bit activations, four channels at a time."""

from stages.backends.kernels.depthwise16 import Depthwise16, Prices16
from stages.backends.kernels.lanes16 import Lanes
from stages.backends.targets.spec import Target


class ArmDepthwise16(Depthwise16):
    """Depthwise convolution of int16 with SMLABB and SMLATT."""

    name = "arm_dsp.depthwise16"
    sources = ("depthwise16.c",)
    function = "arm_dsp_depthwise16"
    clips = True
    prices = Prices16(80.0, 55.0, 19.0, 9.5, by_lanes=3.0)

    def lanes(self, target: Target) -> Lanes:
        return Lanes(group=4, taps=1, inner=2, apart=2, outer=1)
