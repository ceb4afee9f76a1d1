"""Checks and sums of layers on 8-bit tensors: types, layouts, constants, ranges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stages.ir.arrays import Array
from stages.ir.graph import LayerView, Tensor
from stages.ir.operators.products import DepthwiseConv2D, FullyConnected
from stages.support.lazy import np, npt

SUFFIX = {"int8": "s8", "uint8": "u8", "int16": "s16"}  # of C functions that exist for several types
INT8_OFFSET = {"int8": 0, "uint8": 128}  # subtract to get an int8
HALF = 1 << 30  # the multiplier 1/2
MAX_DEPTH = 65535  # products of two int8 that an int32 sum takes, with as much again for the weights' zero point


def not_eight_bit(view: LayerView, *, same: bool = True) -> str:
    """Return why the layer's tensors are not int8 or uint8, '' if they are.

    With `same`, all must have the same type.
    """
    tensors = (*view.inputs, *view.outputs)
    for tensor in tensors:
        if tensor.dtype not in INT8_OFFSET:
            return f"tensor {tensor.name} is {tensor.dtype}; this kernel is for int8 and uint8"
    if same and len({tensor.dtype for tensor in tensors}) > 1:
        return "int8 and uint8 tensors in one layer"
    return ""


def too_deep(depth: int) -> str:
    """Return why int32 cannot hold sums of `depth` products, '' if it can."""
    return f"sums of {depth} products; int32 holds {MAX_DEPTH}" if depth > MAX_DEPTH else ""


def why_not_sums(depth: int, constants: Callable[[], object]) -> str:
    """Return why sums of `depth` products cannot be computed, '' if they can.

    The reason is the depth, or the message of the ValueError that `constants` raises.
    """
    if bad := too_deep(depth):
        return bad
    try:
        constants()
    except ValueError as error:
        return str(error)
    return ""


def why_not_types(view: LayerView) -> str:
    """Return why tensors are not 8-bit of one type with constant 8-bit weights, '' if they are."""
    if bad := not_eight_bit(view):
        return bad
    if not view.has("weights"):
        return "the weights are not constant"
    dtype = str(view.constant("weights").dtype)
    return "" if dtype in INT8_OFFSET else f"weights are {dtype}, not int8 or uint8"


def why_not_centred_types(view: LayerView) -> str:
    """Check as `why_not_types`, and that int8 weights for int8 activations have zero point 0."""
    if bad := why_not_types(view):
        return bad
    shifted = view.op.weight_zero_point or view.constant("weights").dtype != "int8"
    if view.inputs[0].dtype == "int8" and shifted:
        return "weights with a zero point need uint8 activations"
    return ""


def why_not_nhwc(view: LayerView) -> str:
    """Return why a tensor's bytes are not in NHWC order, '' if all tensors' are."""
    for tensor in (*view.inputs, *view.outputs):
        if lies_planar(tensor):
            return f"tensor {tensor.name} is NCHW; this kernel is for NHWC"
    return ""


def why_not_weights_order(view: LayerView) -> str:
    """Return why a fully connected layer's rows and weights differ in order, '' if they do not."""
    planar = any(lies_planar(tensor) for tensor in (view.inputs[0], view.outputs[0]))
    return "NCHW input or output in another order than the weights" if planar else ""


def shifted_input(view: LayerView) -> int:
    """Return the input of an ADD or SUB whose multiplier is 1/2, so that a shift scales it.

    -1 if no input qualifies. For a SUB only the first input can qualify.
    """
    op = view.op
    for number in (0, 1) if op.sign > 0 else (0,):
        if (op.multipliers[number], op.shifts[number]) == (HALF, 0):
            return number
    return -1


def lies_planar(tensor: Tensor) -> bool:
    """Return whether an NCHW tensor's bytes are in another order than in NHWC."""
    return tensor.layout == "NCHW" and tensor.shape[3] > 1 and tensor.shape[1] * tensor.shape[2] > 1


def same_bytes(x: Tensor, y: Tensor) -> bool:
    """Return whether two tensors have one shape and one order of bytes."""
    return x.physical_shape == y.physical_shape and (x.layout or "NHWC") == (y.layout or "NHWC")


def weight_rows(view: LayerView, weights: Array) -> Array:
    """Return `weights` of the kernel layout as [channels, (ky, kx, input channel)].

    Weights of units become [units, depth].
    """
    op = view.op
    if isinstance(op, FullyConnected):
        return weights.reshape(op.units, op.depth)
    if isinstance(op, DepthwiseConv2D):
        by_channel = weights.reshape(-1, op.out_channels).T if op.kernel_layout == "HWC" else weights
        return by_channel.reshape(op.out_channels, -1)
    to_ohwi = {"OHWI": (0, 1, 2, 3), "HWIO": (3, 0, 1, 2), "OIHW": (0, 2, 3, 1)}[op.kernel_layout]
    return weights.transpose(to_ohwi).reshape(op.out_channels, -1)


@dataclass(frozen=True)
class Range:
    """Inclusive bounds of each channel's accumulator: int64 arrays [channels]."""

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]

    @property
    def size(self) -> npt.NDArray[np.int64]:
        """Bound of each accumulator's magnitude."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def in_int32(self) -> Range:
        """Return the bounds of int32 accumulators.

        Channels whose sums leave int32 wrap: they may have any value.
        """
        ends = np.iinfo(np.int32)
        wraps = (self.low < ends.min) | (self.high > ends.max)
        return Range(np.where(wraps, ends.min, self.low), np.where(wraps, ends.max, self.high))


def accumulator_range(weights: npt.NDArray[np.int64], bias: npt.NDArray[np.int64], lowest: int, highest: int) -> Range:
    """Return the bounds of bias + sum(x * weights[channel, :]) for x in [lowest, highest].

    Zero points are already subtracted.
    """
    up, down = np.maximum(weights, 0).sum(1), np.minimum(weights, 0).sum(1)
    return Range(bias + up * lowest + down * highest, bias + up * highest + down * lowest)


@dataclass(frozen=True)
class Sums:
    """A layer with weights as sums over 8-bit values. Arrays are by channel.

    weights            int8 values in int64 [channels, depth]
    weight_zero_point  subtracted from the weights
    bias               int64, with the contribution of the input's zero point
    multiplier, shift  int32, of the result
    range              of the accumulators, in an int32
    """

    weights: npt.NDArray[np.int64]
    weight_zero_point: int
    bias: npt.NDArray[np.int64]
    multiplier: npt.NDArray[np.int32]
    shift: npt.NDArray[np.int32]
    range: Range


def weight_zero_point(view: LayerView) -> int:
    """Return the zero point of the weights as int8."""
    return int(view.op.weight_zero_point - INT8_OFFSET[str(view.constant("weights").dtype)])


def centred_weights(view: LayerView) -> npt.NDArray[np.int16]:
    """Return the weights less their zero point, ordered as `weight_rows`."""
    return weight_rows(view, view.constant("weights").astype(np.int16) - np.int16(view.op.weight_zero_point))


def sums(view: LayerView, activation_offset: int) -> Sums:
    """Return the sums of a convolution or fully connected layer, depth as in `weight_rows`.

    `activation_offset` is subtracted from activations before the kernel reads them.
    """
    op = view.op
    weights = weight_rows(view, view.constant("weights").astype(np.int64))
    channels = len(weights)
    bias = view.constant("bias").astype(np.int64).reshape(-1) if view.has("bias") else np.zeros(channels, np.int64)
    multiplier, shift = (np.broadcast_to(view.constant(r).reshape(-1), (channels,)) for r in ("multiplier", "shift"))
    bounds, zero_point = np.iinfo(view.inputs[0].dtype), op.input_zero_point
    centred = weights - op.weight_zero_point
    offset = INT8_OFFSET[str(view.constant("weights").dtype)]
    return Sums(
        weights - offset,
        weight_zero_point(view),
        bias - (zero_point - activation_offset) * centred.sum(1),
        multiplier,
        shift,
        accumulator_range(centred, bias, int(bounds.min) - zero_point, int(bounds.max) - zero_point).in_int32,
    )
