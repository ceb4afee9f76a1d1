"""A convolution on blocks of 16 channels in TIR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.backends.kernels.tir.window import padded
from tests.support.kernels.blocked import CHANNELS, blocks, order

if TYPE_CHECKING:
    from stages.backends.kernels.kernel import Lowering
    from stages.ir.graph import LayerView


def conv2d(view: LayerView) -> Lowering:
    """One block for all of the layer; channels that only fill up are computed too, their weights are 0."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    shape = (op.out_channels, *op.kernel, op.in_channels)
    layout = order(view)
    weights = layout.physical_shape(shape, "OHWI")
    n, outer, height, width, _ = y.physical_shape

    def weight(b: Any, *at: Any) -> Any:
        if not layout.bits:
            return widen(b.w[at])
        index = at[0]
        for extent, i in zip(weights[1:], at[1:], strict=True):
            index = index * extent + i
        byte = T.Cast("int32", b.w[T.truncdiv(index, 2)])
        nibble = T.bitwise_and(T.shift_right(byte, 4 * T.truncmod(index, 2)), 15)
        return T.bitwise_xor(nibble, 8) - 8

    def meaning(b: Any) -> None:
        with loop(("n", n), ("o", outer), ("oy", height), ("ox", width), ("oo", CHANNELS)) as (i, o, oy, ox, oo):
            store(b.acc, b.channels[o * CHANNELS + oo, 0], 0)
            taps = (("ky", op.kernel[0]), ("kx", op.kernel[1]), ("c", blocks(op.in_channels)), ("cc", CHANNELS))
            with loop(*taps) as (ky, kx, c, cc):
                at, image = (oy, ox), x.shape[1:3]
                value = padded(
                    op, image, at, (ky, kx), lambda iy, ix: widen(b.x[i, c, iy, ix, cc]), op.input_zero_point
                )
                store(b.acc, b.acc[0] + value * weight(b, o, ky, kx, c, cc, oo), 0)
            channel = [b.channels[o * CHANNELS + oo, k] for k in (1, 2)]
            store(b.y, output(view, requantize(b.acc[0], channel[0], channel[1], op.rounding)), i, o, oy, ox, oo)

    rows = outer * CHANNELS
    held = (layout.bytes(shape, axes="OHWI"),) if layout.bits else weights
    dtype = "uint8" if layout.bits else "int8"
    operands = (
        Operand("x", x.physical_shape, x.dtype),
        Operand("w", held, dtype),
        Operand("channels", (rows, 3), "int32"),
        Operand("y", y.physical_shape, y.dtype, "w"),
        accumulator(),
    )
    with Function("conv2d") as f:
        image = f.input(0, x.physical_shape, x.dtype)
        w, channels = f.constant("weights", held, dtype), f.constant("channels", (rows, 3), "int32")
        out, acc = f.output(0, y.physical_shape, y.dtype), f.scratch("acc", (1,), "int32")
        f.place(Block("layer", operands, meaning), x=image, w=w, channels=channels, y=out, acc=acc)
    return f.lowering()
