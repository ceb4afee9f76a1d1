"""DEPTHWISE_CONV_2D by outputs, for windows with little overlap or as large as the image."""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import INT8_OFFSET, centred_weights, why_not_nhwc, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure, taps
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import output
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte
from stages.backends.riscv.kernels.rvp import packing
from stages.backends.riscv.kernels.rvp.base import arithmetic, clip_word
from stages.backends.riscv.kernels.rvp.requantize_tir import requantize_any
from stages.backends.riscv.kernels.rvp.strips import group_channels, is_split, pixel_costs, why_not_arithmetic
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T

FIELDS = Structure.of_header("rvp_depthwise_taps", __file__, "depthwise_taps.h")


class DepthwiseTaps(Kernel):
    """Depthwise convolution of any window, stride and dilation.

    Computes 4 * lanes channels at a time, whose taps are transposed four at a time.
    """

    name = "rvp.depthwise_taps_s8"
    row_alignment = 1
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("depthwise_taps.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or _why_not_shape(view) or why_not_arithmetic(view, any_shift=True)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        constants, op = arithmetic(view, signed_activations=True, any_shift=True), view.op
        groups = group_channels(op.out_channels, target.word_bits // 32)
        values = {
            **dict(zip(("height", "width", "channels"), view.inputs[0].shape[1:], strict=True)),
            **dict(zip(("out_height", "out_width"), view.outputs[0].shape[1:3], strict=True)),
            **taps(op),
            "fill": op.input_zero_point,
            "flip": INT8_OFFSET[view.inputs[0].dtype],
            "clip": clip_word(view),
        }
        return {
            "params": packing.taps_params(
                centred_weights(view),
                constants.bias,
                constants.multiplier,
                constants.rounders,
                target.word_bits,
                groups,
            ),
            "taps": FIELDS.of(values),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return the layer as a loop over images."""
        lanes = target.word_bits // 32
        fields = FIELDS
        return over_images("depthwise_conv2d", _image(view, lanes, fields), view.inputs[0].shape[0])

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 11 per four taps of a group plus pixel loads, and 45 overhead."""
        op, lanes = view.op, target.word_bits // 32
        window = prod(op.kernel)
        come, go = pixel_costs(op.out_channels, lanes)
        group = -(-window // 4) * (come - 6 + 17) + go / 4 + 45
        pixels = prod(view.outputs[0].shape[:3])
        return float(pixels * (-(-op.out_channels // (4 * lanes)) * group + 9 * window + 12 * op.kernel[0] + 60) + 100)


def _why_not_shape(view: LayerView) -> str:
    op = view.op
    if op.depth_multiplier != 1:
        return f"a depth multiplier of {op.depth_multiplier} is not supported"
    if is_split(view):
        return "weights minus their zero point do not fit int8"
    return why_not_nhwc(view)


def _image(view: LayerView, lanes: int, fields: Structure) -> Block:
    """All outputs of an image.

    Channel lane * 4 + j of a group has its constants in params[group, :, j, lane].
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    offset, quads = INT8_OFFSET[x.dtype], -(-prod(op.kernel) // 4)
    groups = group_channels(op.out_channels, lanes)
    size = len(groups[0])

    def meaning(b: Any) -> None:
        loops = (("oy", y.shape[1]), ("ox", y.shape[2]), ("group", len(groups)), ("within", size))
        with loop(*loops) as (oy, ox, group, within):
            channel = T.min(group * (4 * lanes), op.out_channels - size) + within
            lane, j = T.truncdiv(within, 4), T.truncmod(within, 4)
            store(b.acc, b.params[group, 0, j, lane], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                value = activation(view, b.x, (oy, ox), (ky, kx), channel, offset)
                tap = ky * op.kernel[1] + kx
                weight = byte(b.params[group, 3 + T.truncdiv(tap, 4), j, lane], T.truncmod(tap, 4))
                store(b.acc, b.acc[0] + value * weight, 0)
            marks = [b.params[group, 2, register, lanes - 1] for register in (0, 1)]
            multiplier, rounder = (b.params[group, n, j, lane] for n in (1, 2))
            scaled = requantize_any(b.acc[0], multiplier, rounder, *marks)
            store(b.y, output(view, scaled), oy, ox, channel)

    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("params", (len(groups), 3 + quads, 4, lanes), "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        Operand("scratch", (scratch_bytes(view, lanes),), "int8", "w"),
        Operand("taps", fields.shape, "int32"),
        accumulator(),
    )
    return Block("image", operands, meaning, "rvp_depthwise_taps", lambda b: [b.x, b.params, b.y, b.scratch, b.taps])


def scratch_bytes(view: LayerView, lanes: int) -> int:
    """Return the scratch for one pixel and an address per tap, in whole quads."""
    register = 4 * lanes
    return -(-view.op.out_channels // register) * register + -(-prod(view.op.kernel) // 4) * 4 * register
