"""CONV_2D of few channels: four adjacent output bytes at a time, from rows in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import INT8_OFFSET, centred_weights, why_not_nhwc, why_not_sums, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import depth_of
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.backends.kernels.tir.window import activation
from stages.backends.riscv.kernels.rvp import packing
from stages.backends.riscv.kernels.rvp.base import arithmetic, clip_word
from stages.backends.riscv.kernels.rvp.quad_lines import QUADS, QuadLines
from stages.backends.riscv.kernels.rvp.requantize_tir import requantize_any
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np, npt

MOST_WEIGHTS = 1 << 14  # bytes: words of a quad are repeated with zeros, for each byte and each lane
MOST_CHANNELS = 16  # of a group of the input, where outputs are not few: panels and strips share what they read


class Quads(Kernel):
    """Convolution of any window and stride on NHWC images, with groups of whole output quads.

    Weights are repeated for each byte of a word at which a window can begin.
    """

    name = "rvp.quads_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("quads.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        shape = why_not_types(view) or _why_not_shape(view) or _why_not_size(view, target.word_bits // 32)
        return shape or why_not_sums(depth_of(view), lambda: arithmetic(view, signed_activations=True, any_shift=True))

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        constants = arithmetic(view, signed_activations=True, any_shift=True)
        lines = QuadLines.of(view, target.word_bits // 32)
        rows = centred_weights(view).astype(np.int8).reshape(-1, *view.op.kernel, lines.depth)
        if lines.exchanged:
            rows = rows.transpose(0, 2, 1, 3)
        offset = INT8_OFFSET[view.inputs[0].dtype]
        fields = lines.fields() | {
            "fill": view.op.input_zero_point - offset,
            "flip": 0x80 if offset else 0,
            "clip": clip_word(view),
        }
        quads = lines.quad_channels()
        return {
            "weights": quad_weights(rows, lines, quads),
            "params": packing.quad_params(
                constants.bias, constants.multiplier, constants.rounders, quads, target.word_bits
            ),
            "quads": np.array([(quad.start, quad.head, quad.full, quad.tail) for quad in lines.quads], np.int32),
            "layer": QUADS.of(fields),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return the layer as a loop over images."""
        lines = QuadLines.of(view, target.word_bits // 32)
        return over_images("conv2d", _image(view, lines), view.inputs[0].shape[0])

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return QuadLines.of(view, target.word_bits // 32).cost() * view.inputs[0].shape[0] + 200


def _why_not_shape(view: LayerView) -> str:
    op = view.op
    depth, units = op.in_channels // op.groups, op.out_channels // op.groups
    if op.groups > 1 and units % 4:
        return f"groups of {units} outputs; this kernel writes four at a time"
    if depth > MOST_CHANNELS and op.out_channels > 4:
        return f"{depth} input channels per group; the limit is {MOST_CHANNELS}, unless there are at most 4 outputs"
    weights = centred_weights(view)
    if weights.min() < -128 or weights.max() > 127:
        return "weights minus their zero point do not fit int8"
    return why_not_nhwc(view)


def _why_not_size(view: LayerView, lanes: int) -> str:
    size = QuadLines.of(view, lanes).weight_bytes()
    return f"the packed weights take {size} bytes; the limit is {MOST_WEIGHTS}" if size > MOST_WEIGHTS else ""


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


def quad_weights(rows: npt.NDArray[np.int8], lines: QuadLines, quads: list[list[list[int]]]) -> npt.NDArray[np.int8]:
    """Return weights of quads.c: int8 [quads, window rows, words, 4, lanes, 4].

    The input is [channels, rows, columns, depth]. Bytes outside the window of an output byte are 0.
    """
    _, kernel_rows, columns, depth = rows.shape
    packed = np.zeros((len(quads), kernel_rows, 4, lines.lanes, lines.weight_words * 4), np.int8)
    for index, quad in enumerate(quads):
        number = index % len(lines.quads)
        for lane, channels in enumerate(quad):
            for byte, channel in enumerate(channels):
                first = (4 * number + byte) // lines.units * lines.step - lines.quads[number].start * 4
                for column in range(columns):
                    at = first + column * lines.dilation[1] * depth
                    packed[index, :, byte, lane, at : at + depth] = rows[channel, :, column]
    split = packed.reshape(len(quads), kernel_rows, 4, lines.lanes, lines.weight_words, 4)
    return np.ascontiguousarray(split.transpose(0, 1, 4, 2, 3, 5))
