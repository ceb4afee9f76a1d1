"""An engine for tests that works on blocks of 16 channels: convolutions that read and write NCHW16c alone.

Its weights lie in blocks of 16 outputs by 16 inputs, in 4 bits where all of them fit: both are layouts. The kernel
unpacks 4 bits as it computes.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stages.backends.kernels.eight_bit import weight_rows, weight_zero_point, why_not_types
from stages.backends.kernels.folder import KernelFolder
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView, Layout
from stages.ir.packed import pack

CHANNELS = 16
WEIGHTS = Layout("OHWI16i16o")  # (outputs / 16, rows, columns, inputs / 16, 16 inputs, 16 outputs)
NARROW = Layout("OHWI16i16o:4")


class BlockedConv2d(Kernel):
    """int8 convolutions of one group, any window. An estimate of half an instruction for a product of whole blocks."""

    name = "blocked.conv2d"
    ops = frozenset({"conv2d"})
    sources = ()
    layouts = ("NCHW16c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op = view.op
        if op.groups != 1 or view.inputs[0].dtype != "int8" or weight_zero_point(view):
            return "for int8 convolutions of one group"
        return why_not_types(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        weights, rows = self.weights(view), blocks(view.op.out_channels) * CHANNELS
        sums = weights.reshape(len(weights), -1).astype(np.int64).sum(axis=1)
        channels = np.zeros((rows, 3), np.int32)
        bias = view.constant("bias") if view.has("bias") else 0
        channels[: len(weights), 0] = bias - view.op.input_zero_point * sums
        for column, role in ((1, "multiplier"), (2, "shift")):
            channels[: len(weights), column] = view.constant(role)
        return {"weights": pack(weights, order(view), "OHWI"), "channels": channels}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from tests.support.kernels.blocked.conv2d_tir import conv2d

        return conv2d(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        op, (n, height, width, _) = view.op, view.outputs[0].shape
        window = op.kernel[0] * op.kernel[1] * CHANNELS**2 * blocks(op.in_channels) * blocks(op.out_channels)
        return 0.5 * n * height * width * window

    @staticmethod
    def weights(view: LayerView) -> np.ndarray:
        """int8, in logical order: OHWI."""
        op = view.op
        return weight_rows(view, view.constant("weights")).reshape(op.out_channels, *op.kernel, op.in_channels)


def blocks(channels: int) -> int:
    return -(-channels // CHANNELS)


def order(view: LayerView) -> Layout:
    """How the weights lie: in 4 bits where that holds all of them."""
    weights = view.constant("weights")
    return NARROW if weights.min() >= -8 and weights.max() <= 7 else WEIGHTS


FOLDER = KernelFolder(__file__, kernels=(BlockedConv2d,))
