"""DEPTHWISE_CONV_2D of any window through lines of transposed columns."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import centred_weights, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.riscv.kernels.rvp.base import arithmetic
from stages.backends.riscv.kernels.rvp.strips import group_channels, is_split, why_not_arithmetic
from stages.backends.riscv.kernels.rvp.window_lines import WINDOW, Lines, fields, why_not_lines
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


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
        from stages.backends.riscv.kernels.rvp import packing

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
        from stages.backends.riscv.kernels.rvp.depthwise_window_tir import depthwise

        return depthwise(view, Lines.of(view, target.word_bits // 32))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return Lines.of(view, target.word_bits // 32).cost(view)


def _why_not_shape(view: LayerView) -> str:
    x, y = view.inputs[0], view.outputs[0]
    if bad := why_not_lines(view):
        return bad
    if "NCHW" in (x.layout, y.layout):
        return "a tensor is NCHW; this kernel reads and writes NHWC"
    return ""
