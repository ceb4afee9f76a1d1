"""TIR of 3x3 depthwise convolution: one block per channel group of an image."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, select
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte
from stages.backends.riscv.kernels.rvp.base import one_rounding_of
from stages.backends.riscv.kernels.rvp.requantize_tir import half_of, requantize, requantize_once
from stages.backends.riscv.kernels.rvp.strips import (
    GEOMETRY_FIELDS,
    block_channels,
    by_rows,
    group_channels,
    is_split,
    layer_arithmetic,
    scratch_bytes,
    swapped,
)
from stages.ir.graph import LayerView


def _params_shape(view: LayerView, lanes: int, groups: int) -> tuple[int, int, int]:
    return 4 * groups, 9 if is_split(view) else 6, lanes


def _group(view: LayerView, lanes: int, name: str, channels: int) -> Block:
    """`channels` channels of an image.

    Channel lane * 4 + j of group g has its constants in params[4 * g + j, :, lane].
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, _ = x.shape
    _, out_height, out_width, _ = y.shape
    exchanged, split = by_rows(view, lanes) or swapped(view), is_split(view)

    def meaning(b: Any) -> None:
        loops = (("oy", out_height), ("ox", out_width), ("channel", channels))
        with loop(*loops) as (oy, ox, channel):
            lane, first = T.truncmod(T.truncdiv(channel, 4), lanes), T.truncdiv(channel, 4 * lanes) * 4
            j = first + T.truncmod(channel, 4)
            store(b.acc, b.params[j, 3, lane], 0)
            with loop(("ky", 3), ("kx", 3)) as (ky, kx):
                value = activation(view, b.x, (oy, ox), (ky, kx), channel)
                row, column = (kx, ky) if exchanged else (ky, kx)
                if by_rows(view, lanes):
                    column = T.bitwise_xor(column, T.truncmod(channel, 2))
                weight = byte(b.params[j, row, lane], column)
                if split:
                    weight = weight + byte(b.params[j, row + 6, lane], column)
                store(b.acc, b.acc[0] + value * weight, 0)
            marks = [b.params[first, row, lanes - 1] for row in (4, 5)]
            unmarked, rounder = T.bitwise_and(b.params[j, 4, lane], 0x7FFFFFFF), b.params[j, 5, lane]
            once = requantize_once(view, b.acc[0], unmarked, half_of(rounder, 0))
            scaled = requantize(b.acc[0], b.params[j, 4, lane], rounder, marks[1], op.rounding)
            scaled = select(marks[0] < 0, once, scaled)
            store(b.y, output(view, scaled), oy, ox, channel)

    operands = (
        Operand("x", (height, width, channels), x.dtype),
        Operand("params", _params_shape(view, lanes, -(-channels // (4 * lanes))), "int32"),
        Operand("y", (out_height, out_width, channels), y.dtype, "w"),
        Operand("scratch", (scratch_bytes(view, lanes),), "int8", "w"),
        Operand("geometry", (GEOMETRY_FIELDS,), "int32"),
        accumulator(),
    )
    once = "once_" if one_rounding_of(view, layer_arithmetic(view)).everywhere else ""
    group = "few_" if op.out_channels < 4 * lanes else "parts_" if op.out_channels % (4 * lanes) else ""
    group = "rows_" if by_rows(view, lanes) else group
    function = f"rvp_depthwise_{once}{group}s{op.stride[0]}{'u' if x.dtype == 'uint8' else ''}{'s' if split else ''}"
    return Block(name, operands, meaning, function, lambda b: [b.x, b.params, b.y, b.scratch, b.geometry])


def depthwise(view: LayerView, lanes: int) -> Lowering:
    """Loops over images and channel groups; the last group may overlap the one before it."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    groups = group_channels(op.out_channels, lanes)
    size = block_channels(view, lanes)
    whole = op.out_channels // size
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        params = f.constant("params", _params_shape(view, lanes, len(groups)), "int32")
        geometry = f.constant("geometry", (GEOMETRY_FIELDS,), "int32")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        scratch = f.scratch("scratch", (scratch_bytes(view, lanes),), "int8")

        def place(block: Block, n: Any, group: Any, channel: Any) -> None:
            f.place(
                block,
                x=(image, n, 0, 0, channel),
                params=(params, 4 * group, 0, 0),
                y=(out, n, 0, 0, channel),
                scratch=scratch,
                geometry=geometry,
                acc=acc,
            )

        with f.loop(("n", y.shape[0]), ("g", whole)) as (n, g):
            place(_group(view, lanes, "group", size), n, g, g * size)
        if whole * size < op.out_channels:
            with f.loop(("n", y.shape[0])) as (n,):
                place(_group(view, lanes, "last", size), n, len(groups) - 1, groups[-1][0])
    return f.lowering()
