"""DEPTHWISE_CONV_2D."""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.depthwise_cost import by_pixels, by_planes
from stages.backends.generic.kernels.generic.parameters import DEPTHWISE, epilogue
from stages.backends.kernels.eight_bit import too_deep, weight_rows, why_not_centred_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import taps
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class DepthwiseConv2d(Kernel):
    """Depthwise convolution, pixel by pixel (NHWC) or plane by plane (NCHW, single channel).

    The output may have either layout.
    """

    name = "generic.depthwise_conv2d"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    sources = ("depthwise.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_centred_types(view) or too_deep(prod(view.op.kernel))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        from stages.backends.generic.kernels.generic import packing

        op = view.op
        weights, weight_zero_point = packing.signed_weights(view)
        by_channel = weight_rows(view, weights).reshape(op.out_channels, *op.kernel)
        planar = _in_planes(view)
        return {
            "weights": np.ascontiguousarray(by_channel if planar else by_channel.transpose(1, 2, 0)),
            "channels": packing.channels(view, by_channel, weight_zero_point, op.input_zero_point),
            "depthwise": DEPTHWISE.of(depthwise_fields(view, weight_zero_point)),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.depthwise_tir import depthwise_conv2d

        return depthwise_conv2d(view, planar_in=_in_planes(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return 100 + (by_planes(view) if _in_planes(view) else by_pixels(view))


def _in_planes(view: LayerView) -> bool:
    """Return whether neighbours along a row share work.

    A single channel has no adjacent channels, and its bytes are a plane.
    """
    return bool(view.inputs[0].layout == "NCHW" or view.op.in_channels == 1)


def depthwise_fields(view: LayerView, weight_zero_point: int) -> dict[str, int]:
    """Return the fields of the C structure `depthwise` by name."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    planar = y.layout == "NCHW"
    return {
        "height": x.shape[1],
        "width": x.shape[2],
        "out_height": y.shape[1],
        "out_width": y.shape[2],
        "channels": op.out_channels,
        "multiplier": op.depth_multiplier,
        **taps(op),
        "y_pixel": 1 if planar else op.out_channels,
        "y_channel": y.shape[1] * y.shape[2] if planar else 1,
        "input_zero_point": op.input_zero_point,
        "weight_zero_point": weight_zero_point,
    } | epilogue(op, op.rounding)


KERNELS: tuple[type[Kernel], ...] = (DepthwiseConv2d,)
