"""DEPTHWISE_CONV_2D on NHWC images, channel by channel: a window is one or a few vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.cortex_m.kernels.mve import band
from stages.backends.cortex_m.kernels.mve.base import Arithmetic, MveKernel, arithmetic
from stages.backends.cortex_m.kernels.mve.lines import GROUP, WIDEST
from stages.backends.cortex_m.kernels.mve.requantize_tir import requantize
from stages.backends.cortex_m.kernels.mve.strips import CHUNK, FIELDS, MOST_BYTES, STEPS, Strips, strips_of
from stages.backends.kernels.eight_bit import INT8_OFFSET, centred_weights, why_not_centred_types, why_not_sums
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.single_channel import SingleChannel, as_depthwise, as_one_channel, has_single_channels
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.layers import LayerOp
from stages.ir.operators.products import Conv2D
from stages.support.lazy import T, np

if TYPE_CHECKING:
    from stages.backends.cortex_m.kernels.mve.rounding import Mode

MOST_TAPS = 255  # which a byte numbers
FEW_OUTPUTS = 3  # of convolutions of several channels: more of them are better as products of matrices


class DepthwiseTaps(SingleChannel, MveKernel):
    """Any window, stride, dilation, multiplier; also convolutions of one channel, few filters.

    A convolution with few filters is treated as one channel with proportionally more columns. Bands of few rows have
    strips of all their rows (`band`).
    """

    name = "mve.depthwise_taps_s8"
    row_alignment = 1
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    estimate_error = 1.25
    sources = ("taps.S", "taps.c", "depthwise_band.S")
    headers: ClassVar[tuple[str, ...]] = ("taps.h", "depthwise_band.h")

    def is_for(self, op: LayerOp) -> bool:
        return super().is_for(op) or (Kernel.is_for(self, op) and _has_few_filters(op))

    def seen(self, view: LayerView) -> LayerView:
        simplified = Kernel.seen(self, view)
        return as_depthwise(as_one_channel(simplified) if _has_few_filters(view.op) else simplified)

    def why_not_operator(self, view: LayerView) -> str:
        strips = strips_of(view)
        if bad := why_not_centred_types(view):
            return bad
        if strips.taps > MOST_TAPS:
            return f"windows of {strips.taps} elements; the limit is {MOST_TAPS}"
        if not strips.fits:
            return f"a row of windows or a pixel has more than {MOST_BYTES} bytes"
        if centred_weights(view).max() > WIDEST:
            return f"a weight minus its zero point is above {WIDEST}"
        return why_not_sums(strips.taps, lambda: taps_arithmetic(view))

    def overlays(self, view: LayerView) -> bool:
        """Return whether results may replace the input: strips hold the rows still needed."""
        has_same_shape = view.inputs[0].shape == view.outputs[0].shape and view.op.depth_multiplier == 1
        return has_same_shape and tuple(view.op.dilation) == (1, 1)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        if band.is_band(view):
            return {
                "constants": band.constants(view),
                "places": band.places(view),
                "fields": band.FIELDS.of(band.fields(view)),
            }
        op, constants, strips = view.op, taps_arithmetic(view), strips_of(view)
        groups, multiplier, lanes = -(-op.in_channels // GROUP), op.depth_multiplier, strips.lanes
        centred = centred_weights(view)
        if strips.turned:
            by_rows = centred.reshape(-1, *op.kernel)
            centred = by_rows.swapaxes(1, 2).reshape(centred.shape)
        low = np.clip(centred, -128, 127)
        parts = np.stack([low, centred - low][: strips.parts], 1).astype(np.int8)

        def by_group(rows: Array) -> Array:
            """[channels, ...] as [groups, multiplier, lanes, ...]."""
            rows = rows.reshape(op.in_channels, multiplier, *rows.shape[1:])
            rows = np.pad(rows, [(0, groups * lanes - op.in_channels)] + [(0, 0)] * (rows.ndim - 1))
            return np.ascontiguousarray(np.moveaxis(rows.reshape(groups, lanes, *rows.shape[1:]), 2, 1))

        return {
            "params": by_group(constants.params.T.astype(np.int32)),
            "weights": by_group(parts),
            "rotations": _rotations(*strips.kernel),
            "fields": FIELDS.of(strips.fields),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        if band.is_band(view):
            return depthwise_band(view)
        return depthwise(strips_of(view), self.function(view), taps_arithmetic(view).mode)

    def function(self, view: LayerView) -> str:
        """Return the C function of a channel group."""
        strips = strips_of(view)
        mode, wide = taps_arithmetic(view).mode, "_wide" if strips.parts > 1 else ""
        if strips.chunks > 1:
            return f"mve_depthwise_taps_{mode}_many{wide}"
        has_step = strips.step in STEPS and not wide and mode != "shifted"
        return f"mve_depthwise_taps_{mode}_{strips.step if has_step else 'any'}{wide}"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return band.cost(view) if band.is_band(view) else strips_of(view).cost(taps_arithmetic(view).mode)


def _has_few_filters(op: LayerOp) -> bool:
    """Return whether a convolution reads several channels and has few filters."""
    return isinstance(op, Conv2D) and not has_single_channels(op) and op.out_channels <= FEW_OUTPUTS


def taps_arithmetic(view: LayerView) -> Arithmetic:
    """Return the layer's constants with weights as [channels, (ky, kx)].

    Mode exact is used only if a function supports it.
    """
    return arithmetic(view, lowered=not strips_of(view).has_exact)


def _rotations(kernel_y: int, kernel_x: int) -> Array:
    """Return [kernel_y, chunks * 16]: the taps (ky * kernel_x + kx) of a window's bytes.

    Row i is for windows whose first row is in line i.
    """
    size = kernel_y * kernel_x
    rotations = np.full((kernel_y, -(-size // CHUNK) * CHUNK), MOST_TAPS, np.uint8)
    byte = np.arange(size)
    for first in range(kernel_y):
        rotations[first, :size] = (byte % kernel_y - first) % kernel_y * kernel_x + byte // kernel_y
    return rotations


def _group(strips: Strips, function: str, mode: Mode, name: str, channels: int) -> Block:
    """Return the block that computes all outputs of `channels` input channels."""
    view = strips.view
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, _ = x.shape
    _, out_height, out_width, _ = y.shape
    offset, parts, multiplier = INT8_OFFSET[x.dtype], strips.parts, op.depth_multiplier

    def meaning(b: Any) -> None:
        loops = (("oy", out_height), ("ox", out_width), ("lane", channels), ("j", multiplier))
        with loop(*loops) as (oy, ox, lane, j):
            store(b.acc, b.params[j, lane, 0], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                value = activation(view, b.x, (oy, ox), (ky, kx), lane, offset)
                weight: Any = 0
                for part in range(parts):
                    weight = weight + widen(b.weights[j, lane, part, strips.tap(ky, kx)])
                store(b.acc, b.acc[0] + value * weight, 0)
            scaled = requantize(b.acc[0], b.params[j, lane, 1], b.params[j, lane, 2], mode)
            store(b.y, output(view, scaled), oy, ox, lane * multiplier + j)

    operands = (
        Operand("x", (height, width, channels), x.dtype),
        Operand("params", (multiplier, strips.lanes, 3), "int32"),
        Operand("weights", (multiplier, strips.lanes, parts, strips.taps), "int8"),
        Operand("rotations", (strips.kernel[0], strips.chunks * CHUNK), "uint8"),
        Operand("y", (out_height, out_width, channels * multiplier), y.dtype, "w"),
        Operand("strips", (strips.strip_bytes + strips.rotated_bytes,), "int8", "w"),
        Operand("fields", FIELDS.shape, "int32"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.params, b.weights, b.rotations, b.y, channels, b.strips, b.fields]  # noqa: E731
    return Block(name, operands, meaning, function, arguments)


def depthwise(strips: Strips, function: str, mode: Mode) -> Lowering:
    """Return the layer as loops over images and channel groups."""
    view = strips.view
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    whole, left = divmod(op.in_channels, GROUP)
    groups, multiplier, parts = -(-op.in_channels // GROUP), op.depth_multiplier, strips.parts
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        params = f.constant("params", (groups, multiplier, strips.lanes, 3), "int32")
        weights = f.constant("weights", (groups, multiplier, strips.lanes, parts, strips.taps), "int8")
        rotations = f.constant("rotations", (strips.kernel[0], strips.chunks * CHUNK), "uint8")
        fields = f.constant("fields", FIELDS.shape, "int32")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        scratch = f.scratch("strips", (strips.strip_bytes + strips.rotated_bytes,), "int8")

        def place(block: Block, n: Any, g: Any) -> None:
            channel = g * GROUP
            places: dict[str, Any] = {"x": (image, n, 0, 0, channel), "y": (out, n, 0, 0, channel * multiplier)}
            places |= {"params": (params, g, 0, 0, 0), "weights": (weights, g, 0, 0, 0, 0)}
            f.place(block, **places, rotations=rotations, strips=scratch, fields=fields, acc=acc)

        with f.loop(("n", y.shape[0])) as (n,):
            if whole:
                block = _group(strips, function, mode, "group", GROUP)
                with f.loop(("g", whole)) as (g,):
                    place(block, n, g)
            if left:
                place(_group(strips, function, mode, "group_rest", left), n, whole)
    return f.lowering()


def depthwise_band(view: LayerView) -> Lowering:
    """Compute a band of few rows of an NHWC image by one block per image."""
    x, y = view.inputs[0], view.outputs[0]
    _, rows, columns, channels = y.shape

    def meaning(b: Any) -> None:
        with loop(("c", channels), ("row", rows), ("column", columns)) as (c, row, column):
            store(b.acc, b.constants[c, 3], 0)
            with loop(("ky", 3), ("kx", 3)) as (ky, kx):
                at = ky * 3 + kx
                weight = byte(b.constants[c, T.truncdiv(at, 4)], T.truncmod(at, 4))
                store(b.acc, b.acc[0] + activation(view, b.x, (row, column), (ky, kx), c, 0) * weight, 0)
            scaled = requantize(b.acc[0], b.constants[c, 4], b.constants[c, 5], "exact")
            store(b.y, output(view, scaled), row, column, c)

    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("constants", (channels, band.WORDS), "int32"),
        Operand("places", (band.HEAD + -(-rows * columns // 8) * 8,), "int16"),
        Operand("fields", band.FIELDS.shape, "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        Operand("strips", (band.strip_bytes(view),), "int8", "w"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.constants, b.y, b.places, b.strips, b.fields]  # noqa: E731
    block = Block("band", operands, meaning, band.function(view), arguments)
    with Function("depthwise_conv2d") as f:
        image, out = f.input(0, x.shape, x.dtype), f.output(0, y.shape, y.dtype)
        given = {operand.name: f.constant(operand.name, operand.shape, operand.dtype) for operand in operands[1:4]}
        given |= {operand.name: f.scratch(operand.name, operand.shape, operand.dtype) for operand in operands[5:]}
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(block, x=(image, n, 0, 0, 0), y=(out, n, 0, 0, 0), **given)
    return f.lowering()
