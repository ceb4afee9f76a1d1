"""SOFTMAX and RESIZE_BILINEAR by rows."""

from typing import Any, ClassVar

from stages.backends.kernels.resize import Resize8
from stages.backends.kernels.softmax import RowSoftmax
from stages.backends.riscv.kernels.rvv.turns import turns
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView

_FEW = 32  # as in resize.c


class Softmax(RowSoftmax):
    """Softmax one row at a time; exponentials are gathered from a table."""

    name = "rvv.softmax"
    sources = ("softmax.c", "row_vectors.S")
    headers: ClassVar[tuple[str, ...]] = ("rows.h",)
    function = "rvv_softmax"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts: 27 per iteration, 180 per row."""
        length = view.outputs[0].shape[-1]
        row = 27 * turns(target, length, 4) + 6 * turns(target, length) + 180
        return view.outputs[0].elements / length * row


class Resize(Resize8):
    """Bilinear resize of 8-bit images, in 32 bits, for any weights."""

    name = "rvv.resize_bilinear"
    row_alignment = 1
    estimate_error = 1.25
    sources: ClassVar[tuple[str, ...]] = ("resize.c", "row_vectors.S")
    headers: ClassVar[tuple[str, ...]] = ("rows.h",)
    function = "rvv_resize_bilinear_s8"
    whole = 1024

    def row_bytes(self, view: LayerView, target: Target) -> int:
        _, _, width, channels = view.inputs[0].shape
        return 4 * width * channels

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return instructions, from counts: 16 per iteration of a row, 17 of a pixel, 20 a pixel.

        With few channels an iteration has half as many pixels, and takes 15 per channel.
        """
        (_, _, width, channels), (batch, height, out_width, _) = view.inputs[0].shape, view.outputs[0].shape
        pixels = out_width * (17 * turns(target, channels, 4) + 20)
        if channels < _FEW:
            pixels = turns(target, out_width, 8) * (15 * channels + 18)
        return batch * height * (16.0 * turns(target, width * channels, 4) + pixels + 30)
