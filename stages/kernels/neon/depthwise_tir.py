"""TIR of depthwise convolution: a block for each group of channels of an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.eight_bit import INT8_OFFSET
from stages.kernels.neon.depthwise_conv2d import STRUCTURE_BYTES, DepthwiseKernel
from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.kernels.tir.fixed_point import clamp, requantize, select, widen
from stages.kernels.tir.window import inside, tap

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering


def _group(view: LayerView, kernel: DepthwiseKernel) -> Block:
    """All outputs of a group of channels."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, _ = x.shape
    _, out_height, out_width, _ = y.shape
    # What stands outside of the image, and what is subtracted from every activation
    offset = INT8_OFFSET[x.dtype] if kernel.int8_activations else op.input_zero_point
    outside = op.input_zero_point - offset

    def meaning(b: Any) -> None:
        with loop(("oy", out_height), ("ox", out_width), ("lane", kernel.group)) as (oy, ox, lane):
            store(b.acc, b.params[0, lane], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                iy = tap(oy, ky, op.stride[0], op.dilation[0], op.padding[0])
                ix = tap(ox, kx, op.stride[1], op.dilation[1], op.padding[1])
                activation = select(inside(iy, height, ix, width), widen(b.x[iy, ix, lane]) - offset, outside)
                store(b.acc, b.acc[0] + activation * widen(kernel.weight(b.weights, ky, kx, lane)), 0)
            shift = b.params[2, lane] + 31 if op.rounding == "single" else b.params[2, lane]
            scaled = requantize(b.acc[0], b.params[1, lane], shift, op.rounding)
            value = T.Cast(y.dtype, clamp(scaled + op.output_zero_point, op.act_min, op.act_max))
            store(b.y, value, oy, ox, lane)

    operands = (
        Operand("x", (height, width, kernel.group), x.dtype),
        Operand("weights", kernel.weight_shape(view), kernel.weight_type),
        Operand("params", (3, kernel.group), "int32"),
        Operand("y", (out_height, out_width, kernel.group), y.dtype, "w"),
        Operand("depthwise", (STRUCTURE_BYTES,), "int8"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.weights, b.params, b.y, b.depthwise]  # noqa: E731
    return Block("group", operands, meaning, kernel.function(view), arguments)


def depthwise(view: LayerView, kernel: DepthwiseKernel) -> Lowering:
    """The loops over images and groups of channels; channels left over make a group with some before them."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    whole, left = divmod(op.out_channels, kernel.group)
    groups = whole + (1 if left else 0)
    block = _group(view, kernel)
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        weights = f.constant("weights", (groups, *kernel.weight_shape(view)), kernel.weight_type)
        params = f.constant("params", (groups, 3, kernel.group), "int32")
        fields = f.constant("depthwise", (STRUCTURE_BYTES,), "int8")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")

        def place(n: Any, g: Any, channel: Any) -> None:
            constants = {
                "weights": (weights, g, *(0 for _ in kernel.weight_shape(view))),
                "params": (params, g, 0, 0),
                "depthwise": fields,
            }
            f.place(block, x=(image, n, 0, 0, channel), y=(out, n, 0, 0, channel), acc=acc, **constants)

        with f.loop(("n", y.shape[0])) as (n,):
            with f.loop(("g", whole)) as (g,):
                place(n, g, g * kernel.group)
            if left:
                place(n, whole, op.out_channels - kernel.group)
    return f.lowering()
