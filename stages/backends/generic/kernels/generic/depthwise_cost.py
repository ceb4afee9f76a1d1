"""Instructions of depthwise.c, fitted to counts."""

from math import prod

from stages.backends.kernels.windows import taps_inside, whole_windows
from stages.ir.graph import LayerView

_FOUR = 4  # neighbours that are computed at once


def by_planes(view: LayerView) -> float:
    """Return the cost of planes: four pixels of a row at a time.

    If a window leaves the image, each tap is checked.
    """
    op, width = view.op, view.inputs[0].shape[2]
    batch, out_height, out_width, channels = view.outputs[0].shape
    rows = len(whole_windows(view, 0))
    reach = (op.kernel[1] - 1) * op.dilation[1] + (_FOUR - 1) * op.stride[1]
    starts = [column * op.stride[1] - op.padding[1] for column in range(0, out_width, _FOUR)]
    inside = rows * sum(0 <= start < width - reach for start in starts)
    border, taps = out_height * len(starts) - inside, _FOUR * prod(op.kernel)
    fours = inside * (4 * op.kernel[0] + 4.6 * taps) + border * (27 * op.kernel[0] + 8.3 * taps)
    return float(batch * channels * (60 + fours + 47 * (inside + border) + 41 * out_height * out_width))


def by_pixels(view: LayerView) -> float:
    """Return the cost of pixels: four channels at a time.

    The rest, and channels that share an input channel, are computed singly.
    """
    op = view.op
    batch, out_height, out_width, channels = view.outputs[0].shape
    pixels, taps = out_height * out_width, prod(op.kernel)
    if op.depth_multiplier > 1:
        return float(batch * pixels * channels * (88 + 20 * taps))
    (rows, columns), (fours, rest) = (taps_inside(view, axis) for axis in (0, 1)), divmod(channels, _FOUR)
    whole_pixels = len(whole_windows(view, 0)) * len(whole_windows(view, 1))
    inside = sum(rows) * (14 * out_width + _FOUR * 4.2 * sum(columns))
    blocks = 189 * pixels + inside + 19 * (pixels - whole_pixels) * taps
    return float(batch * (118 * pixels + fours * blocks + rest * pixels * (81 + 20 * taps)))
