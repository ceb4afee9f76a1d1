"""DEPTHWISE_CONV_2D by outputs, for windows with little overlap or as large as the image."""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import INT8_OFFSET, centred_weights, why_not_nhwc, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure, taps
from stages.backends.riscv.kernels.rvp.base import arithmetic, clip_word
from stages.backends.riscv.kernels.rvp.strips import group_channels, is_split, pixel_costs, why_not_arithmetic
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

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
        from stages.backends.riscv.kernels.rvp import packing

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
        from stages.backends.riscv.kernels.rvp.depthwise_taps_tir import depthwise

        return depthwise(view, target.word_bits // 32, FIELDS)

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
