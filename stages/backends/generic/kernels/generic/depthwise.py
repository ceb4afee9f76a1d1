"""DEPTHWISE_CONV_2D."""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic import packing
from stages.backends.generic.kernels.generic.packing import signed_weights
from stages.backends.generic.kernels.generic.parameters import DEPTHWISE, epilogue
from stages.backends.kernels.eight_bit import SUFFIX, too_deep, weight_rows, why_not_centred_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import taps
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.backends.kernels.tir.window import padded
from stages.backends.kernels.windows import taps_inside, whole_windows
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np


class DepthwiseConv2d(Kernel):
    """Depthwise convolution, pixel by pixel (NHWC) or plane by plane (NCHW, single channel).

    The output may have either layout.
    """

    name = "generic.depthwise_conv2d"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    sources = ("depthwise.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_centred_types(view) or too_deep(prod(view.op.kernel))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op = view.op
        weights, weight_zero_point = packing.signed_weights(view)
        by_channel = weight_rows(view, weights).reshape(op.out_channels, *op.kernel)
        planar = _in_planes(view)
        return {
            "weights": np.ascontiguousarray(by_channel if planar else by_channel.transpose(1, 2, 0)),
            "channels": packing.channels(view, by_channel, weight_zero_point, op.input_zero_point),
            "depthwise": DEPTHWISE.of(depthwise_fields(view, weight_zero_point)),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return depthwise_conv2d(view, planar_in=_in_planes(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return 100 + (by_planes(view) if _in_planes(view) else by_pixels(view))


def _in_planes(view: LayerView) -> bool:
    """Return whether neighbours along a row share work.

    A single channel has no adjacent channels, and its bytes are a plane.
    """
    return bool(view.inputs[0].layout == "NCHW" or view.op.in_channels == 1)


def depthwise_fields(view: LayerView, weight_zero_point: int) -> dict[str, int]:
    """Return the fields of the C structure `depthwise` by name."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    planar = y.layout == "NCHW"
    return {
        "height": x.shape[1],
        "width": x.shape[2],
        "out_height": y.shape[1],
        "out_width": y.shape[2],
        "channels": op.out_channels,
        "multiplier": op.depth_multiplier,
        **taps(op),
        "y_pixel": 1 if planar else op.out_channels,
        "y_channel": y.shape[1] * y.shape[2] if planar else 1,
        "input_zero_point": op.input_zero_point,
        "weight_zero_point": weight_zero_point,
    } | epilogue(op, op.rounding)


KERNELS: tuple[type[Kernel], ...] = (DepthwiseConv2d,)


_PARAMETERS = Operand("depthwise", DEPTHWISE.shape, "int32")


def depthwise_conv2d(view: LayerView, *, planar_in: bool) -> Lowering:
    """Return the loops over images and planes around the block of one.

    With `planar_in` the input's channels are planes.
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    planar_out = y.layout == "NCHW"
    batch, in_height, in_width, in_channels = x.shape
    kernel = tuple(op.kernel)
    with Function("depthwise_conv2d") as f:
        image = f.input(0, (batch, in_channels, in_height, in_width) if planar_in else x.shape, x.dtype)
        weights = f.constant("weights", (op.out_channels, *kernel) if planar_in else (*kernel, op.out_channels), "int8")
        channels = f.constant("channels", (op.out_channels, 3), "int32")
        fields = f.constant("depthwise", _PARAMETERS.shape, "int32")
        out = f.output(0, y.physical_shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        if planar_in:
            plane = _plane(view, planar_out)
            with f.loop(("n", y.shape[0]), ("c", op.out_channels)) as (n, c):
                source = c if op.depth_multiplier == 1 else T.truncdiv(c, op.depth_multiplier)
                target = (out, n, c, 0, 0) if planar_out else (out, n, 0, 0, c)
                constants = {"w": (weights, c, 0, 0), "channel": (channels, c, 0), "depthwise": fields}
                f.place(plane, x=(image, n, source, 0, 0), y=target, acc=acc, **constants)
        else:
            block = _image(view, planar_out)
            with f.loop(("n", y.shape[0])) as (n,):
                constants = {"w": weights, "channels": channels, "depthwise": fields}
                f.place(block, x=(image, n, 0, 0, 0), y=(out, n, 0, 0, 0), acc=acc, **constants)
    return f.lowering()


def _image(view: LayerView, planar_out: bool) -> Block:
    """Return the block of all channels of one NHWC image."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, count = y.shape

    def meaning(b: Any) -> None:
        with loop(("oy", height), ("ox", width), ("c", count)) as (oy, ox, c):
            source = c if op.depth_multiplier == 1 else T.truncdiv(c, op.depth_multiplier)
            result = _window(
                view,
                b.acc,
                (oy, ox),
                [b.channels[c, i] for i in range(3)],
                lambda iy, ix: b.x[iy, ix, source],
                lambda ky, kx: b.w[ky, kx, c],
            )
            store(b.y, result, *((c, oy, ox) if planar_out else (oy, ox, c)))

    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("w", (*op.kernel, count), "int8"),
        Operand("channels", (count, 3), "int32"),
        _PARAMETERS,
        Operand("y", (count, height, width) if planar_out else (height, width, count), y.dtype, "w"),
        accumulator(),
    )
    function = f"fl_depthwise_nhwc_{SUFFIX[x.dtype]}"
    return Block("image", operands, meaning, function, lambda b: [b.x, b.w, b.channels, b.y, b.depthwise])


def _plane(view: LayerView, planar_out: bool) -> Block:
    """Return the block of one output channel of one NCHW image."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, _ = y.shape

    def meaning(b: Any) -> None:
        with loop(("oy", height), ("ox", width)) as (oy, ox):
            result = _window(
                view,
                b.acc,
                (oy, ox),
                [b.channel[i] for i in range(3)],
                lambda iy, ix: b.x[iy, ix],
                lambda ky, kx: b.w[ky, kx],
            )
            store(b.y, result, *((oy, ox) if planar_out else (oy, ox, 0)))

    operands = (
        Operand("x", x.shape[1:3], x.dtype),
        Operand("w", tuple(op.kernel), "int8"),
        Operand("channel", (3,), "int32"),
        _PARAMETERS,
        Operand("y", (height, width) if planar_out else (height, width, 1), y.dtype, "w"),
        accumulator(),
    )
    function = f"fl_depthwise_nchw_{SUFFIX[x.dtype]}"
    return Block("plane", operands, meaning, function, lambda b: [b.x, b.w, b.channel, b.y, b.depthwise])


def _window(view: LayerView, acc: Any, at: tuple[Any, Any], channel: list[Any], x: Any, w: Any) -> Any:
    """Sum the window of output position `at` into `acc`.

    Return the result in the output's type.

    `channel` is (bias, multiplier, shift); x(iy, ix) and w(ky, kx) load an element and a weight.
    """
    op, image = view.op, view.inputs[0]
    zero_point = signed_weights(view)[1]
    store(acc, channel[0], 0)
    with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
        value = padded(op, image.shape[1:3], at, (ky, kx), lambda iy, ix: widen(x(iy, ix)), op.input_zero_point)
        store(acc, acc[0] + value * (widen(w(ky, kx)) - zero_point), 0)
    return output(view, requantize(acc[0], channel[1], channel[2], op.rounding))


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
