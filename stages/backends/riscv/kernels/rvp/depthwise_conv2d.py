"""DEPTHWISE_CONV_2D with 3x3 windows."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import centred_weights, same_bytes, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, select
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte
from stages.backends.riscv.kernels.rvp import packing
from stages.backends.riscv.kernels.rvp.base import one_rounding_of
from stages.backends.riscv.kernels.rvp.requantize_tir import half_of, requantize, requantize_once
from stages.backends.riscv.kernels.rvp.strips import (
    GEOMETRY_FIELDS,
    block_channels,
    by_rows,
    geometry,
    group_channels,
    is_split,
    layer_arithmetic,
    rows_cost,
    scratch_bytes,
    strips_cost,
    swapped,
    twice,
    why_not_arithmetic,
)
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np

_REGISTER_BYTES = 8  # of RV64; also a multiple of RV32's


class DepthwiseConv2d(Kernel):
    """3x3 depthwise convolution, stride 1 and 2, on NHWC images, 4 * lanes channels at a time.

    Strips of four columns (or rows, where that wastes fewer) are transposed into scratch, so that the columns of a
    channel are neighbours, and back. Few rows without padding above and below are computed row by row instead.
    """

    name = "rvp.depthwise3x3_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("depthwise3x3_s8.S", "depthwise3x3_rows_s8.S", "depthwise.c")
    headers: ClassVar[tuple[str, ...]] = ("depthwise.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or _why_not_shape(view) or why_not_arithmetic(view)

    def overlays(self, view: LayerView) -> bool:
        """Return whether results may replace the input.

        A strip holds the columns that the next one needs too. Groups of channels must not overlap.
        """
        return same_bytes(view.inputs[0], view.outputs[0]) and view.op.out_channels % _REGISTER_BYTES == 0

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        constants, lanes = layer_arithmetic(view), target.word_bits // 32
        taps = centred_weights(view).astype(np.int64).T.reshape(3, 3, -1)
        in_rows = by_rows(view, lanes)
        if in_rows or swapped(view):
            taps = taps.transpose(1, 0, 2)
        if in_rows:  # bytes of odd channels are exchanged
            taps = np.insert(taps, 3, 0, axis=1)
            taps[..., 1::2] = taps[:, [1, 0, 3, 2], 1::2]
        fields = geometry(view, lanes, exchanged=not in_rows and swapped(view))
        channels = view.op.out_channels
        return {
            "params": packing.depthwise_params(
                taps,
                constants.bias,
                constants.multiplier,
                constants.rounders,
                one_rounding_of(view, constants),
                target.word_bits,
                groups=twice(channels) if fields[-1] else group_channels(channels, lanes),
                split=is_split(view),
            ).reshape(-1, 9 if is_split(view) else 6, lanes),
            "geometry": np.array(fields, np.int32),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return depthwise(view, target.word_bits // 32)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        lanes = target.word_bits // 32
        return (rows_cost if by_rows(view, lanes) else strips_cost)(view, lanes)


def _why_not_shape(view: LayerView) -> str:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    if op.kernel != (3, 3) or op.dilation != (1, 1) or op.stride not in ((1, 1), (2, 2)):
        return "only 3x3 windows without dilation and with stride 1 or 2 are supported"
    if op.depth_multiplier != 1:
        return f"a depth multiplier of {op.depth_multiplier} is not supported"
    if "NCHW" in (x.layout, y.layout):
        return "a tensor is NCHW; this kernel reads and writes NHWC"
    return ""


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
