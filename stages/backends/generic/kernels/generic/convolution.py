"""CONV_2D and FULLY_CONNECTED as matrix products."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from stages.backends.generic.kernels.generic.costs import costs_of
from stages.backends.generic.kernels.generic.gemm_cost import convolution_cost
from stages.backends.generic.kernels.generic.im2col import im2col_fields, reads_in_place, row_fields
from stages.backends.generic.kernels.generic.parameters import GEMM, IM2COL, epilogue
from stages.backends.kernels.eight_bit import INT8_OFFSET, too_deep, weight_rows, why_not_types, why_not_weights_order
from stages.backends.kernels.kernel import Kernel, KernelParams, Lowering
from stages.backends.kernels.matrix import depth_of
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class ConvParams(KernelParams):
    """`pixels` output pixels are gathered and multiplied at a time.

    0: four, or two when a window has more than 512 elements, on RISC-V 1024.
    """

    pixels: int = Field(default=0, ge=0, le=64)


class Conv2d(Kernel):
    """Convolution as im2col and a blocked matrix product.

    A pointwise int8 NHWC layer reads its input in place.

    Input and output may each be NHWC or NCHW. uint8 inputs become int8 while they are gathered.
    """

    name = "generic.conv2d"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    sources = ("gemm.c", "im2col.c")
    headers: ClassVar[tuple[str, ...]] = ("gemm.h", "im2col.h")
    params = ConvParams

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or too_deep(depth_of(view))

    def pack(self, view: LayerView, params: ConvParams) -> Mapping[str, Array]:
        from stages.backends.generic.kernels.generic import packing

        op, x = view.op, view.inputs[0]
        weights, weight_zero_point = packing.signed_weights(view)
        flat = weight_rows(view, weights)
        if x.layout == "NCHW":  # a window is gathered plane by plane
            flat = flat.reshape(op.out_channels, *op.kernel, -1).transpose(0, 3, 1, 2).reshape(op.out_channels, -1)
        zero_point = op.input_zero_point - INT8_OFFSET[x.dtype]
        constants = {
            "weights": np.stack([packing.panels(group) for group in np.split(flat, op.groups)]),
            "channels": packing.channels(view, flat, weight_zero_point, zero_point).reshape(op.groups, -1, 3),
            "gemm": GEMM.of(gemm_fields(view, weight_zero_point)),
        }
        if not reads_in_place(view):
            constants["im2col"] = IM2COL.of(im2col_fields(view))
        return constants

    def lower(self, view: LayerView, params: ConvParams, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.convolution_tir import conv2d

        return conv2d(view, tile_pixels(view, params, target))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return convolution_cost(view, tile_pixels(view, params, target), target)


class FullyConnected(Kernel):
    """Rows of x times rows of w, two by eight at once.

    uint8 inputs become int8 in a scratch row first.
    """

    name = "generic.fully_connected"
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})
    sources = ("gemm.c", "im2col.c")
    headers: ClassVar[tuple[str, ...]] = ("gemm.h", "im2col.h")

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_weights_order(view) or why_not_types(view) or too_deep(view.op.depth)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        from stages.backends.generic.kernels.generic import packing

        op, x = view.op, view.inputs[0]
        weights, weight_zero_point = packing.signed_weights(view)
        weights = weight_rows(view, weights)
        zero_point = op.input_zero_point - INT8_OFFSET[x.dtype]
        fields = {"x_row": op.depth, "y_row": op.units, "y_column": 1, "weight_zero_point": weight_zero_point}
        constants = {
            "weights": packing.panels(weights),
            "channels": packing.channels(view, weights, weight_zero_point, zero_point),
            "gemm": GEMM.of(fields | epilogue(op, op.rounding)),
        }
        if x.dtype == "uint8":
            constants["im2col"] = IM2COL.of(row_fields(view))
        return constants

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.convolution_tir import fully_connected

        return fully_connected(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the estimate. A single row takes one instruction more per product than panels."""
        op, price = view.op, costs_of(target).products
        product = price.single + 1 if op.batch == 1 else price.product
        return float(op.batch * op.units * (product * op.depth + price.output))


def tile_pixels(view: LayerView, params: ConvParams, target: Target) -> int:
    """Return the output pixels of one matrix product."""
    out = view.outputs[0]
    pixels = out.shape[1] * out.shape[2]
    if reads_in_place(view):
        return pixels
    chosen = params.pixels or (4 if depth_of(view) <= costs_of(target).deepest_of_four else 2)
    return min(chosen, pixels)


def gemm_fields(view: LayerView, weight_zero_point: int) -> dict[str, int]:
    """Return the fields of the C structure `gemm` by name."""
    op, out = view.op, view.outputs[0]
    planar = out.layout == "NCHW"
    return {
        "x_row": op.in_channels if reads_in_place(view) else depth_of(view),
        "y_row": 1 if planar else op.out_channels,
        "y_column": out.shape[1] * out.shape[2] if planar else 1,
        "weight_zero_point": weight_zero_point,
    } | epilogue(op, op.rounding)


KERNELS: tuple[type[Kernel], ...] = (Conv2d, FullyConnected)
