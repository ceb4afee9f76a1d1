"""Convolutions whose filters read one channel, as depthwise layers."""

from dataclasses import replace
from typing import ClassVar

from stages.backends.kernels.eight_bit import lies_planar
from stages.backends.kernels.kernel import Kernel
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.ir.layers import LayerOp
from stages.ir.operators.products import Conv2D, DepthwiseConv2D


def has_single_channels(op: LayerOp) -> bool:
    """Return whether each filter reads one channel: the only one, or that of its group."""
    return isinstance(op, Conv2D) and op.groups == op.in_channels


def as_depthwise(view: LayerView) -> LayerView:
    """Return the layer as DEPTHWISE_CONV_2D if each filter reads one channel, else unchanged.

    With `groups` groups of m filters, output channel g * m + i reads channel g, as in a depthwise layer with the
    multiplier m. Sums and roundings are equal. Weights [O, kh, kw, 1] in any order become OIHW [O, 1, kh, kw].
    """
    op = view.op
    if not has_single_channels(op):
        return view
    fields = {name: getattr(op, name) for name in type(op).model_fields if name in DepthwiseConv2D.model_fields}
    multiplier = op.out_channels // op.in_channels
    depthwise = DepthwiseConv2D(
        **{**fields, "op": "depthwise_conv2d", "depth_multiplier": multiplier, "kernel_layout": "OIHW"}
    )
    key = view.layer.constants["weights"]
    weights = view.arrays[key].transpose([op.kernel_layout.index(axis) for axis in "OIHW"])
    return replace(view, layer=view.layer.model_copy(update={"op": depthwise}), arrays={**view.arrays, key: weights})


def as_one_channel(view: LayerView) -> LayerView:
    """Return an NHWC convolution as a one-channel convolution with c times the columns.

    Unchanged if impossible. The bytes of a row are its pixels' c channels in order. So a window of kx columns is one of
    kx * c adjacent values, the next window begins stride * c later, and padding has the zero point for each channel.
    Weights, [O, kh, kw, c], have the same order. Dilated columns of several channels have no such window.
    """
    op, x = view.op, view.inputs[0]
    if op.groups != 1 or lies_planar(x) or (op.dilation[1] != 1 and op.kernel[1] != 1):
        return view
    (batch, height, width, c), (top, left, bottom, right) = x.shape, op.padding
    kernel = (op.kernel[0], op.kernel[1] * c)
    changes = {
        "kernel": kernel,
        "stride": (op.stride[0], op.stride[1] * c),
        "dilation": (op.dilation[0], 1),
        "padding": (top, left * c, bottom, right * c),
        "in_channels": 1,
        "kernel_layout": "OHWI",
    }
    key = view.layer.constants["weights"]
    weights = view.arrays[key].transpose([op.kernel_layout.index(axis) for axis in "OHWI"])
    image = x.model_copy(update={"shape": (batch, height, width * c, 1)})
    return replace(
        view,
        layer=view.layer.model_copy(update={"op": op.model_copy(update=changes)}),
        tensors={**view.tensors, x.name: image},
        arrays={**view.arrays, key: weights.reshape(op.out_channels, *kernel, 1)},
    )


class SingleChannel(Kernel):
    """Base of depthwise kernels that compute single-channel convolutions too."""

    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d", "conv2d"})

    def seen(self, view: LayerView) -> LayerView:
        return as_depthwise(super().seen(view))

    def why_not(self, view: LayerView, target: Target) -> str:
        if isinstance(self.seen(view).op, Conv2D):
            return "filters of several channels; this kernel is for depthwise layers"
        return super().why_not(view, target)

    def is_for(self, op: LayerOp) -> bool:
        return super().is_for(op) and (isinstance(op, DepthwiseConv2D) or has_single_channels(op))
