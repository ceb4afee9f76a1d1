"""Convolution and fully connected layers as products of matrices.

Rows are output pixels (or rows of the batch), the depth is a window (or a row), columns are output channels (or units).
"""

from math import prod

from stages.backends.kernels.structure import TAPS, taps
from stages.ir.graph import LayerView
from stages.ir.operators.products import Conv2D, FullyConnected

# Which elements of an image a row is gathered from.
WINDOWS = ("height", "width", "channels", *TAPS, "out_width")


def rows_of(view: LayerView) -> int:
    """Return the output pixels of all images."""
    return view.outputs[0].elements // columns_of(view)


def depth_of(view: LayerView) -> int:
    """Return the elements of a window in a group of channels, or of a row."""
    op = view.op
    return int(op.depth if isinstance(op, FullyConnected) else prod(op.kernel) * op.in_channels // op.groups)


def columns_of(view: LayerView) -> int:
    """Return the output channels, or units."""
    op = view.op
    return int(op.units if isinstance(op, FullyConnected) else op.out_channels)


def has_windows(view: LayerView) -> bool:
    """Return whether the layer is more than a plain product of matrices."""
    op = view.op
    return bool(isinstance(op, Conv2D) and (op.kernel, op.stride, op.padding) != ((1, 1), (1, 1), (0, 0, 0, 0)))


def run_elements(view: LayerView) -> int:
    """Return how many elements of a row are adjacent in the image.

    A row of the window, or one tap if the window is dilated.
    """
    op = view.op
    if isinstance(op, FullyConnected):
        return int(op.depth)
    return int(op.in_channels * (op.kernel[1] if op.dilation[1] == 1 else 1))


def windows_of(view: LayerView) -> dict[str, int]:
    """Return the fields WINDOWS of a convolution."""
    _, height, width, channels = view.inputs[0].shape
    return {
        "height": height,
        "width": width,
        "channels": channels,
        **taps(view.op),
        "out_width": view.outputs[0].shape[2],
    }


def pixels_of(rows: int, depth: int) -> dict[str, int]:
    """Return the fields WINDOWS for `rows` rows that are copied unchanged.

    They are the pixels of an image with one line.
    """
    ones = dict.fromkeys(TAPS, 1) | {"top": 0, "left": 0}
    return {"height": 1, "width": rows, "channels": depth, **ones, "out_width": rows}
