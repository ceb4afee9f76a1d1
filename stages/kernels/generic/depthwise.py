"""DEPTHWISE_CONV_2D."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import too_deep, weight_rows, why_not_centred_types
from stages.kernels.generic.parameters import DEPTHWISE, epilogue
from stages.kernels.kernel import Kernel, Lowering
from stages.kernels.structure import taps

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.targets.spec import Target


class DepthwiseConv2d(Kernel):
    """An NHWC input is computed pixel by pixel, an NCHW one plane by plane; the output may have either layout."""

    name = "generic.depthwise_conv2d"
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    sources = ("depthwise.c",)
    headers: ClassVar[tuple[str, ...]] = ("depthwise.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_centred_types(view) or too_deep(prod(view.op.kernel))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        from stages.kernels.generic import packing

        op = view.op
        weights, weight_zero_point = packing.signed_weights(view)
        by_channel = weight_rows(view, weights).reshape(op.out_channels, *op.kernel)
        planar = view.inputs[0].layout == "NCHW"
        return {
            "weights": np.ascontiguousarray(by_channel if planar else by_channel.transpose(1, 2, 0)),
            "channels": packing.channels(view, by_channel, weight_zero_point, op.input_zero_point),
            "depthwise": DEPTHWISE.of(depthwise_fields(view, weight_zero_point)),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.generic.depthwise_tir import depthwise_conv2d

        return depthwise_conv2d(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """8.5 instructions for a product (10 in planes), 28 for an output."""
        each = 10.0 if view.inputs[0].layout == "NCHW" else 8.5
        return view.outputs[0].elements * (each * prod(view.op.kernel) + 28)


def depthwise_fields(view: LayerView, weight_zero_point: int) -> dict[str, int]:
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
