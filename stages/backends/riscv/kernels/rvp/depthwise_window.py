"""DEPTHWISE_CONV_2D of any window through lines of transposed columns."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import INT8_OFFSET, centred_weights, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import output
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte
from stages.backends.riscv.kernels.rvp import packing
from stages.backends.riscv.kernels.rvp.base import arithmetic
from stages.backends.riscv.kernels.rvp.requantize_tir import requantize_any
from stages.backends.riscv.kernels.rvp.strips import group_channels, is_split, why_not_arithmetic
from stages.backends.riscv.kernels.rvp.window_lines import WINDOW, Lines, fields, record, why_not_lines
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np


class DepthwiseWindow(Kernel):
    """Depthwise convolution of any window, dilation, depth multiplier and channel count.

    The stride along one axis is 1 or 2. Computes 4 * lanes channels at a time. Their lines are transposed into scratch,
    so that four columns of a channel are neighbours, and back.
    """

    name = "rvp.depthwise_s8"
    row_alignment = 1
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("depthwise_window.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or _why_not_shape(view) or why_not_arithmetic(view, any_shift=True)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        lanes = target.word_bits // 32
        constants, lines = arithmetic(view, signed_activations=True, any_shift=True), Lines.of(view, lanes)
        taps = centred_weights(view).astype(np.int64).T.reshape(*view.op.kernel, -1)
        if lines.exchanged:
            taps = taps.transpose(1, 0, 2)
        return {
            "params": packing.window_params(
                taps,
                constants.bias,
                constants.multiplier,
                constants.rounders,
                target.word_bits,
                starts=lines.words.starts,
                groups=group_channels(view.op.out_channels, lanes),
                split=is_split(view),
            ),
            "window": WINDOW.of(fields(view, lines)),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return the layer as a loop over images."""
        lines = Lines.of(view, target.word_bits // 32)
        return over_images("depthwise_conv2d", _image(view, lines), view.inputs[0].shape[0])

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return Lines.of(view, target.word_bits // 32).cost(view)


def _why_not_shape(view: LayerView) -> str:
    x, y = view.inputs[0], view.outputs[0]
    if bad := why_not_lines(view):
        return bad
    if "NCHW" in (x.layout, y.layout):
        return "a tensor is NCHW; this kernel reads and writes NHWC"
    return ""


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
