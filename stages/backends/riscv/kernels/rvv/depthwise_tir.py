"""TIR of depthwise convolution, and of convolution of few channels: one block per image."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import int64, output, requantize, widen
from stages.backends.kernels.tir.window import activation
from stages.backends.riscv.kernels.rvv.depthwise_lines import FIELDS, Lines, is_clipped
from stages.ir.graph import LayerView


def depthwise(view: LayerView, lines: Lines, mode: str, word_bits: int) -> Lowering:
    """Return the loop over images around the block of one."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    kernel_height, kernel_width = op.kernel
    _, height, width, channels = y.shape
    lanes, taps, inputs = lines.lanes, lines.taps, lines.inputs

    def meaning(b: Any) -> None:
        with loop(("oy", height), ("ox", width), ("c", channels)) as (oy, ox, c):
            group, lane = (0, c) if lines.groups == 1 else (T.truncdiv(c, lanes), T.truncmod(c, lanes))
            store(b.acc, b.channels[group, 0, lane], 0)
            with loop(("ky", kernel_height), ("kx", kernel_width), ("k", inputs)) as (ky, kx, k):
                source = k if op.op == "conv2d" else c if not lines.is_few else T.truncdiv(c, op.depth_multiplier)
                value = activation(view, b.x, (oy, ox), (ky, kx), source)
                weight = widen(b.weights[group, (ky * kernel_width + kx) * inputs + k, lane])
                store(b.acc, b.acc[0] + value * weight, 0)
            multiplier = b.channels[group, 1, lane]
            if op.rounds_once:  # of twice the multiplier, without a sign
                multiplier = T.shift_right(T.bitwise_and(int64(multiplier), T.int64(0xFFFFFFFF)), T.int64(1))
            right = widen(b.weights[group, taps, lane])
            scaled = requantize(b.acc[0], multiplier, 0 - right, op.rounding)
            store(b.y, output(view, scaled), oy, ox, c)

    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("weights", (lines.groups, taps + 1 + lines.is_few, lanes), "int16"),
        Operand("channels", (lines.groups, 3, lanes), "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        Operand("lines", (lines.scratch_words(word_bits),), "int32", "w"),
        Operand("columns", (len(lines.columns),), "int32"),
        Operand("fields", FIELDS.shape, "int32"),
        accumulator(),
    )
    function = f"rvv_depthwise_{lines.shape}_{mode}{'_clipped' if is_clipped(view) else ''}"
    arguments = lambda b: [b.x, b.weights, b.channels, b.y, b.lines, b.columns, b.fields]  # noqa: E731
    return over_images(op.op, Block("image", operands, meaning, function, arguments), y.shape[0])
