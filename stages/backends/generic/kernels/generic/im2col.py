"""Parameters of im2col: convolution windows as rows of a matrix."""

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.matrix import has_windows, pixels_of, windows_of
from stages.ir.graph import LayerView


def reads_in_place(view: LayerView) -> bool:
    """Return whether windows are single pixels in the order of the matrix product."""
    x = view.inputs[0]
    return not has_windows(view) and x.dtype == "int8" and x.layout != "NCHW"


def im2col_fields(view: LayerView) -> dict[str, int]:
    """Return the fields of fl_im2col for a group of channels."""
    op, x = view.op, view.inputs[0]
    return windows_of(view) | {
        "channels": op.in_channels // op.groups,
        "pixel": 1 if x.layout == "NCHW" else op.in_channels,
        "fill": op.input_zero_point - INT8_OFFSET[x.dtype],
        "flip": INT8_OFFSET[x.dtype],
    }


def row_fields(view: LayerView) -> dict[str, int]:
    """Return the fields that convert a fully connected row to int8, as an image of one pixel."""
    flip = INT8_OFFSET[view.inputs[0].dtype]
    return pixels_of(1, view.op.depth) | {"pixel": view.op.depth, "fill": 0, "flip": flip}
