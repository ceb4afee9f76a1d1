"""DEPTHWISE_CONV_2D with 3x3 windows."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import centred_weights, same_bytes, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.riscv.kernels.rvp.base import one_rounding_of
from stages.backends.riscv.kernels.rvp.strips import (
    by_rows,
    geometry,
    group_channels,
    is_split,
    layer_arithmetic,
    rows_cost,
    strips_cost,
    swapped,
    twice,
    why_not_arithmetic,
)
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

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
        from stages.backends.riscv.kernels.rvp import packing

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
        from stages.backends.riscv.kernels.rvp.depthwise_tir import depthwise

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
