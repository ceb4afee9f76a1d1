"""TIR of a convolution in quads of output bytes: one block per image."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.backends.kernels.tir.window import activation
from stages.backends.riscv.kernels.rvp.quad_lines import QUADS, QuadLines
from stages.backends.riscv.kernels.rvp.requantize_tir import requantize_any
from stages.ir.graph import LayerView


def _image(view: LayerView, lines: QuadLines) -> Block:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    lanes, offset, quads = lines.lanes, INT8_OFFSET[x.dtype], len(lines.quads)

    def meaning(b: Any) -> None:
        loops = (("oy", y.shape[1]), ("ox", y.shape[2]), ("group", op.groups), ("unit", lines.units))
        with loop(*loops) as (oy, ox, group, unit):
            column = T.truncmod(oy if lines.exchanged else ox, lines.period)
            place = column * lines.units + unit
            number, byte = T.truncdiv(place, 4), T.truncmod(place, 4)
            start = T.truncdiv(T.truncdiv(number * 4, lines.units) * lines.step, 4)
            part, lane = (T.truncdiv(group, lanes), T.truncmod(group, lanes)) if op.groups > 1 else (0, 0)
            quad = part * quads + number
            store(b.acc, b.params[quad, byte, 0, lane], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1]), ("c", lines.depth)) as (ky, kx, c):
                value = activation(view, b.x, (oy, ox), (ky, kx), group * lines.depth + c, offset)
                row, tap = (kx, ky) if lines.exchanged else (ky, kx)
                at = column * lines.step + tap * (lines.dilation[1] * lines.depth) + c
                weight = b.weights[quad, row, T.truncdiv(at, 4) - start, byte, lane, T.truncmod(at, 4)]
                store(b.acc, b.acc[0] + value * widen(weight), 0)
            marks = [b.params[quad, register, 2, lanes - 1] for register in (0, 1)]
            multiplier, rounder = (b.params[quad, byte, n, lane] for n in (1, 2))
            scaled = requantize_any(b.acc[0], multiplier, rounder, *marks)
            store(b.y, output(view, scaled), oy, ox, group * lines.units + unit)

    count = lines.parts * quads
    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("weights", (count, lines.kernel[0], lines.weight_words, 4, lanes, 4), "int8"),
        Operand("params", (count, 4, 3, lanes), "int32"),
        Operand("quads", (quads, 4), "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        Operand("scratch", (lines.scratch_bytes(),), "int8", "w"),
        Operand("layer", QUADS.shape, "int32"),
        accumulator(),
    )
    return Block(
        "image",
        operands,
        meaning,
        lines.function,
        lambda b: [b.x, b.weights, b.params, b.quads, b.y, b.scratch, b.layer],
    )


def convolution(view: LayerView, lines: QuadLines) -> Lowering:
    """Return the layer as a loop over images."""
    return over_images("conv2d", _image(view, lines), view.inputs[0].shape[0])
