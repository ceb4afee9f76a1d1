"""RESIZE_BILINEAR of int8."""

from stages.backends.kernels.resize import Resize8
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class MveResize(Resize8):
    """Bilinear resize of four channels at a time, in 32 bits, for any weights."""

    name = "mve.resize_bilinear_s8"
    row_alignment = 1
    estimate_error = 1.25
    function = "mve_resize_bilinear_s8"
    whole = 1024
    prices = (2.3, 1.6, 18.0)

    def row_bytes(self, view: LayerView, target: Target) -> int:
        _, _, width, channels = view.inputs[0].shape
        return 4 * width * channels
