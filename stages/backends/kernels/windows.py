"""Position of convolution and pooling windows: inside the image or in the padding.

`axis` is 0 for rows and 1 for columns. Example: an image of 4 columns, windows of 3 columns, one column of padding:

    . a b c d .        windows   . a b   a b c   b c d   c d .
                       taps      2       3       3       2          of outputs 0 to 3, taps_inside
                                         1       2                  whole_windows: range(1, 3)
"""

from stages.ir.graph import LayerView


def whole_windows(view: LayerView, axis: int) -> range:
    """Return the output rows or columns whose windows read no padding along the axis.

    They are adjacent; range(0) if there are none. Output (y, x) reads no padding if y is in the range of axis 0 and x
    in that of axis 1.
    """
    starts, reach = _starts(view, axis), (view.op.kernel[axis] - 1) * _dilation(view, axis)
    last = view.inputs[0].shape[1 + axis] - reach
    inside = [number for number, start in enumerate(starts) if 0 <= start < last]
    return range(inside[0], inside[-1] + 1) if inside else range(0)


def taps_inside(view: LayerView, axis: int) -> list[int]:
    """Return how many window rows (columns) of each output row (column) are in the image.

    0 for a window outside of the image.
    """
    size, taps, step = view.inputs[0].shape[1 + axis], view.op.kernel[axis], _dilation(view, axis)
    # Tap t is at start + t * step; both bounds are rounded up.
    return [max(min(-((start - size) // step), taps) - max(-(start // step), 0), 0) for start in _starts(view, axis)]


def _starts(view: LayerView, axis: int) -> range:
    """Return the image row or column of each window's first tap, below 0 in the padding."""
    first, stride = -view.op.padding[axis], view.op.stride[axis]
    return range(first, first + view.outputs[0].shape[1 + axis] * stride, stride)


def _dilation(view: LayerView, axis: int) -> int:
    """Return the rows or columns from tap to tap, 1 for a pool."""
    dilation: tuple[int, int] = getattr(view.op, "dilation", (1, 1))
    return dilation[axis]
