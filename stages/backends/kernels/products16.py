"""Layers of int16 activations with int8 weights as sums of products, for all families.

Each family has C for its sums, `p16_products` of include/products16_image.h. The header describes the rest.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import columns_of, pixels_of, rows_of, run_elements, windows_of
from stages.backends.kernels.plan16 import FIELDS, Plan, Tile, direct_rows, plan, scratch_words
from stages.backends.kernels.sixteen_bit import not_sixteen_by_eight
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import clamp, int64, widen
from stages.backends.kernels.tir.window import padded
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.products import Conv2D, FullyConnected
from stages.support.lazy import T, np


class Products16(Kernel):
    """CONV_2D of one group and FULLY_CONNECTED on NHWC images, one image at a time.

    `function` is the C function of the family. `prices` are instructions per product, per output, and per window
    element that is gathered for `tile.rows` pixels.
    """

    bits = 16
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d", "fully_connected"})
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)
    roundings: ClassVar[frozenset[str]] = frozenset({"wide", "real"})
    function: ClassVar[str]
    prices: ClassVar[tuple[float, float, float]]

    @abstractmethod
    def tile(self, target: Target) -> Tile:
        """The pixels and outputs that the target's registers hold."""

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op = view.op
        if bad := not_sixteen_by_eight(view):
            return bad
        if op.input_zero_point or op.output_zero_point:
            return "zero points; this kernel is for zero points of 0"
        if getattr(op, "groups", 1) != 1:
            return f"{op.groups} groups; this kernel has one"
        try:
            plan(view, self.tile(target))
        except ValueError as error:
            return str(error)
        return ""

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        op, tile = view.op, self.tile(target)
        row_plan = plan(view, tile)
        alternating = row_plan.weights.reshape(-1, tile.pair, row_plan.depth).transpose(0, 2, 1)
        fields = {
            **(windows_of(view) if isinstance(op, Conv2D) else pixels_of(op.batch, op.depth)),
            "pixels": rows_of(view) // view.outputs[0].shape[0] if isinstance(op, Conv2D) else op.batch,
            "out_channels": columns_of(view),
            "run": run_elements(view),
            "pitch": row_plan.pitch,
            "depth": row_plan.depth,
            "chunk": row_plan.chunk,
            "direct": direct_rows(view, tile, row_plan.depth),
            "mode": row_plan.mode,
            "low": op.act_min,
            "high": op.act_max,
        }
        return {
            "weights": np.ascontiguousarray(alternating).reshape(-1),
            "channels": np.concatenate([row_plan.bias.view(np.int32).reshape(-1, 2), row_plan.scale], axis=1),
            "fields": FIELDS.of(fields),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        tile = self.tile(target)
        return products16(view, tile, plan(view, tile), self.function)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        tile, row_plan = self.tile(target), plan(view, self.tile(target))
        pixels, (product, output, gathered) = rows_of(view), self.prices
        alone = pixels % tile.rows
        rows_at_once = pixels - alone + alone * tile.rows / 2  # a row alone takes half of a tile
        total = (product * row_plan.depth + output) * row_plan.weights.shape[0] * rows_at_once
        if direct_rows(view, tile, row_plan.depth) < tile.rows:
            total += gathered * row_plan.depth * pixels
        return 100.0 + total


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
