"""CONV_2D and FULLY_CONNECTED: panels of pixels times all output channels."""

from __future__ import annotations

from abc import abstractmethod
from math import prod
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from stages.kernels.eight_bit import INT8_OFFSET, weight_rows, why_not_sums, why_not_types, why_not_weights_order
from stages.kernels.kernel import Kernel, KernelParams, Lowering
from stages.kernels.rvp.base import arithmetic

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.rvp.base import Arithmetic
    from stages.targets.spec import Target

# Scratch for the panels of one call by lanes: as many panels as fit share what a call costs.
PANEL_BYTES = {1: 2048, 2: 4096}
# The C structure rvp_geometry of panel.h, field by field.
GEOMETRY = (
    *("height", "width", "channels", "kernel_y", "kernel_x", "stride_y", "stride_x", "dilation_y", "dilation_x"),
    *("top", "left", "out_width", "fill"),
)


class GemmParams(KernelParams):
    """`mr` rows (pixels) are multiplied with all output channels at a time."""

    mr: int = Field(default=5, ge=1, le=5)


class _Gemm(Kernel):
    sources = ("gemm_s8.S", "dot_s8.S", "panel.c")
    headers: ClassVar[tuple[str, ...]] = ("gemm.h", "panel.h")
    params = GemmParams

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or self.why_not_shape(view) or why_not_arithmetic(view)

    @abstractmethod
    def why_not_shape(self, view: LayerView) -> str:
        """The reason the kernel cannot compute a layer of this shape or layout, '' when it can."""

    def pack_for(self, view: LayerView, params: GemmParams, target: Target) -> Mapping[str, np.ndarray]:
        import numpy as np

        from stages.kernels.rvp import packing

        made, blocks = layer_arithmetic(view), block_count(view, target.word_bits // 32)
        constants: dict[str, np.ndarray] = {
            "weights": packing.gemm_weights(
                made.weights.astype(np.int8), made.weight_zero_point, run_bytes(view), target.word_bits, blocks
            ),
            "params": packing.gemm_params(made.bias, made.multiplier, made.rounders, target.word_bits, blocks),
        }
        if has_windows(view):
            fields = geometry(view)
            constants["geometry"] = np.array([fields[name] for name in GEOMETRY], np.int32)
        return constants

    def candidates(self, view: LayerView, target: Target) -> tuple[GemmParams, ...]:
        """Five rows, or four: a tail of few rows costs more than a smaller block."""
        rows = matrix(view)[0]
        return tuple(self.params(mr=mr) for mr in (5, 4)[: 2 if rows > 4 else 1])

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        from stages.kernels.rvp.convolution_tir import gemm

        return gemm(view, params.mr, target.word_bits // 32)

    def cost(self, view: LayerView, params: GemmParams, target: Target) -> float:
        """Inner loop (4 + 5 mr instructions for 16 mr * lanes products), epilogue and panels, as measured."""
        rows, depth, _ = matrix(view)
        lanes = target.word_bits // 32
        columns = block_count(view, lanes) * 4 * lanes  # with those that are not there
        mr = min(params.mr, rows)
        products = (4 + 5 * mr + 3 / 8) / (16 * mr * lanes) if rows > 1 else (17 + 4 / 8) / (32 * lanes)
        gathered = 0.8 if depth % 4 == 0 and view.inputs[0].shape[-1] % 4 == 0 else 3.0
        tiles = -(-rows // mr)
        return rows * columns * (depth * products + 7 / lanes) + rows * (depth * gathered + 15) + tiles * 110


class Conv2d(_Gemm):
    """Any window, stride, dilation and padding on NHWC images; pointwise layers read their rows in place.

    The panel of five pixels is gathered into scratch once and multiplied with all channels in one call.
    """

    name = "rvp.gemm_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})

    def why_not_shape(self, view: LayerView) -> str:
        op, x = view.op, view.inputs[0]
        if op.groups != 1:
            return f"{op.groups} groups; this kernel has one"
        if x.layout == "NCHW":
            return "the input is NCHW; panels are gathered from NHWC"
        if x.shape[0] != 1 and has_windows(view):
            return f"a batch of {x.shape[0]} with windows"
        return ""


class FullyConnected(_Gemm):
    """Rows of x times all units; one row is a dot product over streamed weights, 4 * lanes units at once."""

    name = "rvp.dot_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})

    def why_not_shape(self, view: LayerView) -> str:
        return why_not_weights_order(view)


def layer_arithmetic(view: LayerView) -> Arithmetic:
    """The layer's constants with weights as [channels, (ky, kx, input channel)]."""
    import numpy as np

    weights = weight_rows(view, view.constant("weights").astype(np.int64))
    return arithmetic(view, weights, signed_activations=True)


def why_not_arithmetic(view: LayerView) -> str:
    """Why the layer's sums are not what the kernels compute and round, '' if they are."""
    return why_not_sums(matrix(view)[1], lambda: layer_arithmetic(view))


def matrix(view: LayerView) -> tuple[int, int, int]:
    """Rows (output pixels), depth (elements of a window) and columns (output channels) of the product."""
    op, out = view.op, view.outputs[0]
    if op.op == "fully_connected":
        return op.batch, op.depth, op.units
    return out.elements // op.out_channels, int(prod(op.kernel)) * op.in_channels, op.out_channels


def has_windows(view: LayerView) -> bool:
    """Whether rows must be gathered: the layer is no plain product of matrices."""
    op = view.op
    return bool(op.op == "conv2d" and (op.kernel, op.stride, op.padding) != ((1, 1), (1, 1), (0, 0, 0, 0)))


def geometry(view: LayerView) -> dict[str, int]:
    """The fields of rvp_geometry."""
    op, x, out = view.op, view.inputs[0], view.outputs[0]
    values = (
        *x.shape[1:],
        *op.kernel,
        *op.stride,
        *op.dilation,
        op.padding[0],
        op.padding[1],
        out.shape[2],
        op.input_zero_point,
    )
    return dict(zip(GEOMETRY, values, strict=True))


def run_bytes(view: LayerView) -> int:
    """Elements of a row that are neighbours in the image: a row of the window, or one tap of a dilated one."""
    op = view.op
    if op.op == "fully_connected":
        return int(op.depth)
    return int(op.in_channels * (op.kernel[1] if op.dilation[1] == 1 else 1))


def flip(view: LayerView) -> int:
    """What makes an activation int8."""
    return INT8_OFFSET[view.inputs[0].dtype]


def function_suffix(weight_zero_point: int, rounding: str) -> str:
    """Which variant of the functions of gemm_s8.S."""
    return ("z" if weight_zero_point else "") + ("s" if rounding == "single" else "")


def block_channels(view: LayerView, lanes: int) -> int:
    """Channels that the kernel computes at a time: a block, or two for a single row."""
    return 4 * lanes * (2 if matrix(view)[0] == 1 else 1)


def block_count(view: LayerView, lanes: int) -> int:
    """Blocks of 4 * lanes channels, the last ones maybe without channels."""
    at_a_time = block_channels(view, lanes)
    return -(-matrix(view)[2] // at_a_time) * at_a_time // (4 * lanes)


def needs_stage(view: LayerView, lanes: int) -> bool:
    """Whether rows of output cannot be written in place: not whole registers, or planar."""
    columns = matrix(view)[2]
    return columns % block_channels(view, lanes) != 0 or view.outputs[0].layout == "NCHW"
