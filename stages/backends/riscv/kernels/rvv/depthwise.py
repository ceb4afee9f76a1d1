"""DEPTHWISE_CONV_2D, and CONV_2D of few channels, on NHWC images.

The lanes of a vector are channels, of one pixel or of neighbours.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import why_not_nhwc, why_not_sums, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import int64, output, requantize, widen
from stages.backends.kernels.tir.window import activation
from stages.backends.riscv.kernels.rvv.depthwise_lines import FIELDS, Lines, arithmetic, fields, is_clipped, lines_of
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np


class _Windows(Kernel):
    """Base of the kernels that call functions of depthwise.S."""

    row_alignment = 1
    estimate_error = 1.3
    sources = ("depthwise.S",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := why_not_types(view) or why_not_nhwc(view) or self.why_not_window(view):
            return bad
        lines = lines_of(view, target.vlen)
        if lines.is_few and lines.offsets().max() + lines.x_step >= 1 << 16:
            return "the inputs of two vectors are more than 64 KB apart"
        return why_not_sums(lines.taps, lambda: arithmetic(view))

    def why_not_window(self, view: LayerView) -> str:
        """Return why the kernel cannot compute the layer's window, '' if it can."""
        return ""

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        constants, lines = arithmetic(view), lines_of(view, target.vlen)
        return {
            "weights": lines.weights(constants.weights),
            "channels": lines.by_groups(constants.params),
            "columns": np.array(lines.columns, np.int32),
            "fields": FIELDS.of(fields(view, lines)),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return depthwise(view, lines_of(view, target.vlen), arithmetic(view).mode, target.word_bits)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return float(view.inputs[0].shape[0] * lines_of(view, target.vlen).cost())


class Depthwise(_Windows):
    """Depthwise convolution with any window, stride, dilation and depth multiplier.

    3x3 windows have code of their own; with strides 1 and 2 neighbours share columns.
    """

    name = "rvv.depthwise_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})


class FewInputs(_Windows):
    """Convolution that reads inputs by index.

    An example is the first layer of a network, with 8 or 16 output channels.
    """

    name = "rvv.few_inputs_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})

    def why_not_window(self, view: LayerView) -> str:
        op = view.op
        if op.groups > 1:
            return "grouped convolutions are not supported"
        if op.dilation[1] > 1 and op.in_channels > 1 and op.kernel[1] > 1:
            return f"a dilation of {op.dilation[1]} is not supported"
        return ""


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
