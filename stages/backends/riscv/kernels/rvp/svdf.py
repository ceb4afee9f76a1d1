"""SVDF on int8."""

from stages.backends.kernels.svdf import Svdf8
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class RvpSvdf(Svdf8):
    """SVDF with one register of a row per SMAQA, two steps of a memory per KMDA."""

    name = "rvp.svdf_s8"
    estimate_error = 1.5
    function = "rvp_svdf_s8"
    prices = (0.55, 4.0, 45.0, 40.0)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if reason := super().why_not_layer(view, target):
            return reason
        return "" if view.constant("time").min() > -(1 << 15) else "a time weight is -32768; its products may saturate"

    def chunk(self, target: Target) -> int:
        return target.word_bits // 8
