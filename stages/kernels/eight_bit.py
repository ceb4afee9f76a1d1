"""Layers on 8-bit tensors as the vector kernels take them: types, layouts, constants, bounds of the sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.kernels.generic.base import not_eight_bit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.graph import LayerView

INT8_OFFSET = {"int8": 0, "uint8": 128}  # what is subtracted to make a value of the type an int8


def why_not_types(view: LayerView) -> str:
    """Why the layer is not on 8-bit tensors of one type with constant 8-bit weights, '' if it is."""
    if bad := not_eight_bit(view):
        return bad
    if not view.has("weights"):
        return "the weights are not constant"
    dtype = str(view.constant("weights").dtype)
    return "" if dtype in INT8_OFFSET else f"weights are {dtype}, not int8 or uint8"


def why_not_nhwc(view: LayerView) -> str:
    """Why a tensor's bytes are in another order than NHWC, '' if none's are."""
    for tensor in (*view.inputs, *view.outputs):
        if tensor.layout == "NCHW" and tensor.shape[3] > 1 and tensor.shape[1] * tensor.shape[2] > 1:
            return f"tensor {tensor.name} is NCHW; this kernel is for NHWC"
    return ""


@dataclass(frozen=True)
class Range:
    """Inclusive bounds of each channel's accumulator: int64 arrays [channels]."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]

    @property
    def size(self) -> NDArray[np.int64]:
        """Bound of each accumulator's magnitude."""
        import numpy as np

        return np.maximum(np.abs(self.low), np.abs(self.high))


def accumulator_range(weights: NDArray[np.int64], bias: NDArray[np.int64], lowest: int, highest: int) -> Range:
    """Bounds of bias + sum(x * weights[channel, :]) for x in [lowest, highest]; zero points are subtracted already."""
    import numpy as np

    up, down = np.maximum(weights, 0).sum(1), np.minimum(weights, 0).sum(1)
    return Range(bias + up * lowest + down * highest, bias + up * highest + down * lowest)


@dataclass(frozen=True)
class Sums:
    """A layer with weights as sums over 8-bit numbers; arrays are by channel.

    weights            int8 values in int64 [channels, depth]
    weight_zero_point  what is subtracted from them
    bias               int64, with all that the input's zero point adds
    multiplier, shift  int32, of the result
    range              of the accumulators
    """

    weights: NDArray[np.int64]
    weight_zero_point: int
    bias: NDArray[np.int64]
    multiplier: NDArray[np.int32]
    shift: NDArray[np.int32]
    range: Range


def sums(view: LayerView, weights: NDArray[np.int64], activation_offset: int) -> Sums:
    """The sums of a convolution or fully connected layer.

    `weights` are the layer's own values, int64 [channels, depth]; `activation_offset` is what activations are lowered
    by before they reach the kernel.
    """
    import numpy as np

    op = view.op
    channels = len(weights)
    bias = view.constant("bias").astype(np.int64).reshape(-1) if view.has("bias") else np.zeros(channels, np.int64)
    multiplier, shift = (np.broadcast_to(view.constant(r).reshape(-1), (channels,)) for r in ("multiplier", "shift"))
    bounds, zero_point = np.iinfo(view.inputs[0].dtype), op.input_zero_point
    centred = weights - op.weight_zero_point
    offset = INT8_OFFSET[str(view.constant("weights").dtype)]
    return Sums(
        weights - offset,
        op.weight_zero_point - offset,
        bias - (zero_point - activation_offset) * centred.sum(1),
        multiplier,
        shift,
        accumulator_range(centred, bias, int(bounds.min) - zero_point, int(bounds.max) - zero_point),
    )
