"""Constants and line buffers of depthwise convolution in groups of sixteen channels."""

from stages.backends.kernels.eight_bit import INT8_OFFSET, centred_weights
from stages.backends.kernels.structure import TAPS, Structure, taps
from stages.ir.graph import LayerView

GROUP = 16
WIDEST = 254  # the largest weight that is the sum of two int8 numbers
IMAGE = ("height", "width", "pixel", "left", "pitch", "fill", "flip")  # of depthwise_image.h
_WINDOW = tuple(field for field in TAPS if field != "left")
FIELDS = Structure(  # of depthwise.h
    "mve_depthwise", (*IMAGE, "zero_point", "low", "high", "out_height", "out_width", *_WINDOW)
)


def parts_of(view: LayerView) -> int:
    """Return the number of int8 addends of a weight."""
    weights = centred_weights(view)
    return 1 if weights.min() >= -128 and weights.max() <= 127 else 2


def is_plain(view: LayerView) -> bool:
    """Return whether the output is int8 without narrower bounds, so that saturation clamps it."""
    return view.inputs[0].dtype == "int8" and (view.op.act_min, view.op.act_max) == (-128, 127)


def group_count(view: LayerView) -> int:
    """Return the number of channel groups."""
    return -(-int(view.op.out_channels) // GROUP)


def lines(view: LayerView) -> tuple[int, int]:
    """Return the number of line buffers and the bytes of each."""
    op = view.op
    span = [(op.kernel[i] - 1) * op.dilation[i] + 1 for i in range(2)]
    columns = (view.outputs[0].shape[2] - 1) * op.stride[1] + span[1]
    return span[0], columns * GROUP


def fields(view: LayerView) -> dict[str, int]:
    """Return the fields of mve_depthwise."""
    op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
    _, height, width, channels = view.inputs[0].shape
    _, out_height, out_width, _ = view.outputs[0].shape
    return {
        "height": height,
        "width": width,
        "pixel": channels,
        "pitch": lines(view)[1],
        "fill": op.input_zero_point - offset,
        "flip": offset,
        "zero_point": op.output_zero_point - offset,
        "low": op.act_min - offset,
        "high": op.act_max - offset,
        "out_height": out_height,
        "out_width": out_width,
        **taps(op),
    }
