"""TIR of layers on int16 activations as matrix products: one block per image."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.matrix import columns_of, run_elements
from stages.backends.kernels.plan16 import FIELDS, Plan, Tile, scratch_words
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import clamp, int64, widen
from stages.backends.kernels.tir.window import padded
from stages.ir.graph import LayerView
from stages.ir.operators.products import FullyConnected

Expr = Any  # a TIR expression or a Python int


def scaled16(total: Expr, high: Expr, low: Expr) -> Expr:
    """Return (total * scale + 2^63) >> 64 of an int32 value.

    `scale` is two words (stages.backends.kernels.scales16).
    """
    below = T.shift_right(total * int64(low), T.int64(32))
    product = total * int64(high) + below + T.int64(1 << 31)
    return T.Cast("int32", T.shift_right(product, T.int64(32)))


def within32(value: Expr) -> Expr:
    """Return a value saturated to int32, as int64."""
    return T.min(T.max(value, T.int64(-(1 << 31))), T.int64((1 << 31) - 1))


def wide_bias(b: Any, channel: Expr) -> Expr:
    """Return the int64 bias of struct s16_channel. The structures are the operand `channels`."""
    low = T.bitwise_and(int64(b.channels[channel, 0]), T.int64(0xFFFFFFFF))
    return T.shift_left(int64(b.channels[channel, 1]), T.int64(32)) + low


def products16(view: LayerView, tile: Tile, row_plan: Plan, function: str) -> Lowering:
    """Return the loop over images around the block of one.

    Rows of a batch are the pixels of one image.
    """
    op, channels, run = view.op, columns_of(view), run_elements(view)
    is_dense = isinstance(op, FullyConnected)
    batch = 1 if is_dense else view.outputs[0].shape[0]
    image = (op.batch, op.depth) if is_dense else view.inputs[0].shape[1:]
    out = (op.batch, channels) if is_dense else view.outputs[0].shape[1:]

    def weight(b: Any, o: Expr, k: Expr) -> Expr:
        if tile.pair == 1:
            return widen(b.w[o * row_plan.depth + k])
        first = T.truncdiv(o, tile.pair) * (tile.pair * row_plan.depth)
        return widen(b.w[first + k * tile.pair + T.truncmod(o, tile.pair)])

    def result(b: Any, o: Expr) -> Expr:
        value = scaled16(within32(b.acc[0]), b.channels[o, 2], b.channels[o, 3])
        return T.Cast("int16", clamp(value, op.act_min, op.act_max))

    def rows(b: Any) -> None:
        with loop(("n", op.batch), ("o", channels)) as (n, o):
            store(b.acc, wide_bias(b, o), 0)
            with loop(("k", op.depth)) as k:
                store(b.acc, b.acc[0] + int64(widen(b.x[n, k]) * weight(b, o, k)), 0)
            store(b.y, result(b, o), n, o)

    def windows(b: Any) -> None:
        with loop(("oy", out[0]), ("ox", out[1]), ("o", channels)) as (oy, ox, o):
            store(b.acc, wide_bias(b, o), 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1]), ("c", op.in_channels)) as (ky, kx, c):
                taps = run // op.in_channels
                k = (
                    (ky * row_plan.pitch + kx * op.in_channels)
                    if taps > 1
                    else (ky * op.kernel[1] + kx) * row_plan.pitch
                )
                value = padded(op, image[:2], (oy, ox), (ky, kx), lambda iy, ix: widen(b.x[iy, ix, c]), 0)
                store(b.acc, b.acc[0] + int64(value * weight(b, o, k + c)), 0)
            store(b.y, result(b, o), oy, ox, o)

    constants = (
        Operand("w", (row_plan.weights.size,), "int8"),
        Operand("channels", (len(row_plan.bias), 4), "int32"),
        Operand("fields", FIELDS.shape, "int32"),
    )
    scratch = Operand("scratch", (scratch_words(tile, row_plan),), "int32", "rw")
    operands = (
        Operand("x", image, "int16"),
        *constants,
        Operand("y", out, "int16", "w"),
        scratch,
        Operand("acc", (1,), "int64", "rw"),
    )
    arguments = lambda b: [b.x, b.w, b.channels, b.y, b.scratch, b.fields]  # noqa: E731
    block = Block("image", operands, rows if is_dense else windows, function, arguments)
    with Function(op.op) as f:
        source = f.input(0, (batch, *image), "int16")
        buffers = {c.name: f.constant("weights" if c.name == "w" else c.name, c.shape, c.dtype) for c in constants}
        target = f.output(0, (batch, *out), "int16")
        buffers |= {"scratch": f.scratch("panel", scratch.shape, "int32"), "acc": f.scratch("acc", (1,), "int64")}
        zeros = (0,) * len(out)
        with f.loop(("image", batch)) as (n,):
            f.place(block, x=(source, n, *zeros), y=(target, n, *zeros), **buffers)
    return f.lowering()
