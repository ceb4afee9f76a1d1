"""TIR of depthwise convolution of any window: one block per image."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import output
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte
from stages.backends.riscv.kernels.rvp.requantize_tir import requantize_any
from stages.backends.riscv.kernels.rvp.strips import group_channels, is_split
from stages.backends.riscv.kernels.rvp.window_lines import WINDOW, Lines, record
from stages.ir.graph import LayerView


def _image(view: LayerView, lines: Lines) -> Block:
    """All channel groups of an image.

    Channel lane * 4 + j of a group has its constants in params[group, j, :, lane].
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    lanes, words, split = lines.lanes, lines.words, is_split(view)
    rows, row_words, offset = lines.kernel[0], len(words.starts), INT8_OFFSET[x.dtype]
    groups = group_channels(op.out_channels, lanes)
    size = len(groups[0])

    def channel(b: Any, oy: Any, ox: Any, group: Any, within: Any) -> None:
        c = T.min(group * (4 * lanes), op.out_channels - size) + within
        lane, j = T.truncdiv(within, 4), T.truncmod(within, 4)

        def weight(row: Any, column: Any) -> Any:
            word = row * row_words + words.place(T.truncdiv(column, 4))
            return byte(b.params[group, j, 3 + word, lane], T.truncmod(column, 4))

        store(b.acc, b.params[group, j, 0, lane], 0)
        with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
            value = activation(view, b.x, (oy, ox), (ky, kx), T.truncdiv(c, op.depth_multiplier), offset)
            row, column = (kx, ky) if lines.exchanged else (ky, kx)
            factor = weight(row, column)
            if split:
                factor = factor + weight(row + rows, column)
            store(b.acc, b.acc[0] + value * factor, 0)
        marks = [b.params[group, register, 2, lanes - 1] for register in (0, 1)]
        multiplier, rounder = (b.params[group, j, n, lane] for n in (1, 2))
        store(b.y, output(view, requantize_any(b.acc[0], multiplier, rounder, *marks)), oy, ox, c)

    def meaning(b: Any) -> None:
        loops = (("oy", y.shape[1]), ("ox", y.shape[2]), ("group", len(groups)), ("within", size))
        with loop(*loops) as (oy, ox, group, within):
            channel(b, oy, ox, group, within)

    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("params", (len(groups), 4, record(view, lines), lanes), "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        Operand("scratch", (lines.scratch_bytes(),), "int8", "w"),
        Operand("window", WINDOW.shape, "int32"),
        accumulator(),
    )
    return Block("image", operands, meaning, words.function, lambda b: [b.x, b.params, b.y, b.scratch, b.window])


def depthwise(view: LayerView, lines: Lines) -> Lowering:
    """Return the layer as a loop over images."""
    return over_images("depthwise_conv2d", _image(view, lines), view.inputs[0].shape[0])
