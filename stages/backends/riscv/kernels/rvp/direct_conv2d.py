"""CONV_2D with wide windows: a tile of rows at a time, with one copy of each pixel."""

from collections.abc import Mapping
from typing import ClassVar

from stages.backends.kernels.eight_bit import why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.riscv.kernels.rvp.base import arithmetic, one_rounding_of, rounds_once
from stages.backends.riscv.kernels.rvp.panels import why_not_arithmetic
from stages.backends.riscv.kernels.rvp.tiling import DirectParams, Tiling, geometry, usable_axes
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

_SAVED_BY_ONCE = 5.2  # instructions for a register of outputs that is rounded once


class DirectConv2d(Kernel):
    """Convolution with 3, 5 or 7 taps along one axis, any along the other, on NHWC int8 images."""

    name = "rvp.direct_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("direct_s8.S", "direct.c")
    headers: ClassVar[tuple[str, ...]] = ("direct.h",)
    params = DirectParams

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or _why_not_shape(view, target) or why_not_arithmetic(view)

    def pack_for(self, view: LayerView, params: DirectParams, target: Target) -> Mapping[str, Array]:
        from stages.backends.riscv.kernels.rvp import packing

        lanes = target.word_bits // 32
        constants, tiling = arithmetic(view, signed_activations=True), Tiling.of(view, params, lanes)
        weights = constants.weights.reshape(-1, *view.op.kernel, view.op.in_channels).astype(np.int8)
        if tiling.axis == "columns":
            weights = weights.transpose(0, 2, 1, 3)
        phases = [weights]
        if tiling.shape.phases:
            starts = [tiling.shape.first_byte(column, view) % 4 for column in range(tiling.shape.phases)]
            phases = [packing.in_chunks(weights, start, tiling.shape.kernel_columns) for start in starts]
        return {
            "weights": np.stack([packing.direct_weights(phase, target.word_bits) for phase in phases]),
            "params": packing.direct_params(
                constants.bias,
                constants.multiplier,
                constants.rounders,
                one_rounding_of(view, constants),
                target.word_bits,
            ),
            "geometry": np.array(geometry(view, tiling, lanes), np.int32),
        }

    def lower(self, view: LayerView, params: DirectParams, target: Target) -> Lowering:
        from stages.backends.riscv.kernels.rvp.direct_tir import direct

        lanes = target.word_bits // 32
        return direct(view, Tiling.of(view, params, lanes), lanes)

    def cost(self, view: LayerView, params: DirectParams, target: Target) -> float:
        lanes = target.word_bits // 32
        saved = _SAVED_BY_ONCE * view.outputs[0].elements / (4 * lanes) if rounds_once(view) else 0.0
        return Tiling.of(view, params, lanes).cost(view.op.out_channels, lanes) - saved


def _why_not_shape(view: LayerView, target: Target) -> str:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    block = 4 * (target.word_bits // 32)
    if x.dtype != "int8" or op.weight_zero_point:
        return "the tensors are uint8; this kernel supports int8"
    if op.groups != 1:
        return f"{op.groups} groups; this kernel supports one"
    if not list(usable_axes(view)):
        return f"a window of {op.kernel[0]}x{op.kernel[1]}; one axis needs 3, 5 or 7 taps with stride 1, or 3 with 2"
    if op.dilation != (1, 1):
        return "the window is dilated"
    if op.out_channels % block:
        return f"{op.out_channels} output channels are not a multiple of {block}"
    if "NCHW" in (x.layout, y.layout):
        return "a tensor is NCHW; this kernel reads and writes NHWC"
    return ""
