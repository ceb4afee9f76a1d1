"""DEPTHWISE_CONV_2D on NHWC images, one channel per lane."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.cortex_m.kernels.mve.base import Arithmetic, MveKernel, arithmetic
from stages.backends.cortex_m.kernels.mve.lanes import Lanes, constants_of, lanes_of
from stages.backends.cortex_m.kernels.mve.lines import FIELDS, GROUP, fields, group_count, is_plain, lines, parts_of
from stages.backends.cortex_m.kernels.mve.requantize_tir import requantize
from stages.backends.kernels.eight_bit import (
    INT8_OFFSET,
    centred_weights,
    same_bytes,
    why_not_centred_types,
    why_not_sums,
)
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np

if TYPE_CHECKING:
    from stages.backends.cortex_m.kernels.mve.rounding import Mode


class DepthwiseKernel(MveKernel):
    """Depthwise layers without a multiplier, in modes exact and lowered."""

    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    headers: ClassVar[tuple[str, ...]] = ("depthwise.h",)

    def why_not_operator(self, view: LayerView) -> str:
        op = view.op
        if bad := why_not_centred_types(view):
            return bad
        if op.depth_multiplier != 1:
            return f"a depth multiplier of {op.depth_multiplier} is not supported"
        if parts_of(view) > 1:
            return "weights minus their zero point do not fit int8"
        return why_not_sums(prod(op.kernel), lambda: self.arithmetic(view)) or self.why_not_window(view)

    def why_not_window(self, view: LayerView) -> str:
        """Return why the kernel cannot compute the layer's window, '' if it can."""
        return ""

    def arithmetic(self, view: LayerView) -> Arithmetic:
        """Return the layer's constants with weights as [channels, (ky, kx)]."""
        return arithmetic(view, lowered=False, shifted=False)


class Depthwise3x3(DepthwiseKernel):
    """3x3 depthwise convolution with column strides 1 and 2, in assembly.

    Works row by row; scratch holds as many line buffers as a window spans rows, used in turn.
    """

    name = "mve.depthwise3x3_s8"
    row_alignment = 1
    estimate_error = 1.25
    sources = ("depthwise3x3.S", "depthwise3x3.c")

    def why_not_window(self, view: LayerView) -> str:
        op = view.op
        if op.kernel != (3, 3) or op.dilation != (1, 1) or op.stride[1] > 2:
            return "only 3x3 windows without dilation and with stride 1 or 2 are supported"
        return why_not_pairs(centred_weights(view)[:, :8])

    def overlays(self, view: LayerView) -> bool:
        """Return whether results may replace the input: line buffers hold the rows still needed."""
        return same_bytes(view.inputs[0], view.outputs[0])

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        constants, channels = self.arithmetic(view), view.op.out_channels
        groups = group_count(view)
        behind = ((0, 0), (0, groups * GROUP - channels))
        weights = np.pad(centred_weights(view).T.astype(np.int8), behind).reshape(-1, groups, GROUP).transpose(1, 0, 2)
        numbers = np.pad(constants.params, behind).reshape(3, groups, 4, 4).transpose(1, 0, 3, 2)
        words = np.ascontiguousarray(weights).view(np.int32).reshape(groups, -1)
        return {
            "constants": np.concatenate([words, numbers.reshape(groups, -1).astype(np.int32)], 1),
            "fields": FIELDS.of(fields(view)),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        mode, clipped = self.arithmetic(view).mode, "" if is_plain(view) else "_clipped"
        return depthwise(view, f"mve_depthwise3x3_{mode}_s{view.op.stride[1]}{clipped}", mode)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts: outputs, 4 or 6 per copied pixel, 140 per row."""
        batch, height, width, channels = view.outputs[0].shape
        _, in_height, in_width, _ = view.inputs[0].shape
        output = 116 + 8 * (self.arithmetic(view).mode == "lowered") + 6 * (not is_plain(view))
        pixel = 4 if channels >= GROUP and view.inputs[0].dtype == "int8" else 6
        rows = height * (width * output + 90) + in_height * (in_width * pixel + 50)
        return float(batch * group_count(view) * (rows + 60))


class Depthwise(DepthwiseKernel):
    """Depthwise convolution of any window, stride and dilation.

    16 channels at a time, or four where fewer remain.
    """

    name = "mve.depthwise_s8"
    row_alignment = 1
    estimate_error = 1.25
    sources = ("lanes.S", "quads.S", "lanes.c")
    headers: ClassVar[tuple[str, ...]] = ("lanes.h",)

    def why_not_window(self, view: LayerView) -> str:
        taps = prod(view.op.kernel)
        return why_not_pairs(centred_weights(view)[:, taps % 2 :])

    def lanes(self, view: LayerView) -> Lanes:
        """Return the distribution of the layer's channels over vectors."""
        return lanes_of(view, self.arithmetic(view).mode)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return constants_of(self.lanes(view), self.arithmetic(view).params, centred_weights(view))

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.cortex_m.kernels.mve.lanes import depthwise

        return depthwise(self.lanes(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return float(view.inputs[0].shape[0] * self.lanes(view).cost())


def why_not_pairs(weights: Array) -> str:
    """Return why products cannot be added in int16 two by two, '' if they can.

    Weights are [channels, pairs * 2].
    """
    pairs = (weights == -128).reshape(len(weights), -1, 2)
    return "two paired weights are -128; their products do not fit int16" if pairs.all(axis=2).any() else ""


def _words(view: LayerView) -> int:
    """Words of a group's constants."""
    return int(view.op.kernel[0] * view.op.kernel[1]) * (GROUP // 4) + 3 * GROUP


def _group(view: LayerView, function: str, mode: Mode, name: str, channels: int) -> Block:
    """Return the block that computes all outputs of `channels` channels."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, _ = x.shape
    _, out_height, out_width, _ = y.shape
    offset = INT8_OFFSET[x.dtype]
    words = _words(view)
    behind = words - 3 * GROUP
    span, pitch = lines(view)

    def meaning(b: Any) -> None:
        with loop(("oy", out_height), ("ox", out_width), ("lane", channels)) as (oy, ox, lane):
            # Vector j has channels j, j + 4, j + 8, j + 12.
            at = behind + T.truncmod(lane, 4) * 4 + T.truncdiv(lane, 4)
            store(b.acc, b.constants[at], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                value = activation(view, b.x, (oy, ox), (ky, kx), lane, offset)
                first = (ky * op.kernel[1] + kx) * (GROUP // 4) + T.truncdiv(lane, 4)
                weight = byte(b.constants[first], T.truncmod(lane, 4))
                store(b.acc, b.acc[0] + value * weight, 0)
            scaled = requantize(b.acc[0], b.constants[at + GROUP], b.constants[at + 2 * GROUP], mode)
            store(b.y, output(view, scaled), oy, ox, lane)

    operands = (
        Operand("x", (height, width, channels), x.dtype),
        Operand("constants", (words,), "int32"),
        Operand("y", (out_height, out_width, channels), y.dtype, "w"),
        Operand("lines", (span * pitch,), "int8", "w"),
        Operand("fields", FIELDS.shape, "int32"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.constants, b.y, channels, b.lines, b.fields]  # noqa: E731
    return Block(name, operands, meaning, function, arguments)


def depthwise(view: LayerView, function: str, mode: Mode) -> Lowering:
    """Return the layer as a loop over channel groups."""
    x, y = view.inputs[0], view.outputs[0]
    whole, left = divmod(view.op.out_channels, GROUP)
    span, pitch = lines(view)
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        constants = f.constant("constants", (group_count(view), _words(view)), "int32")
        fields = f.constant("fields", FIELDS.shape, "int32")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        scratch = f.scratch("lines", (span * pitch,), "int8")

        def place(block: Block, n: Any, g: Any) -> None:
            channel = g * GROUP
            places = {"x": (image, n, 0, 0, channel), "y": (out, n, 0, 0, channel), "constants": (constants, g, 0)}
            f.place(block, lines=scratch, fields=fields, acc=acc, **places)

        with f.loop(("n", y.shape[0])) as (n,):
            if whole:
                block = _group(view, function, mode, "group", GROUP)
                with f.loop(("g", whole)) as (g,):
                    place(block, n, g)
            if left:
                place(_group(view, function, mode, "group_rest", left), n, whole)
    return f.lowering()
