"""TIR of depthwise convolution: one block per image (NHWC) or plane (NCHW, single channel)."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.generic.kernels.generic.packing import signed_weights
from stages.backends.generic.kernels.generic.parameters import DEPTHWISE
from stages.backends.kernels.eight_bit import SUFFIX
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.backends.kernels.tir.window import padded
from stages.ir.graph import LayerView

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
