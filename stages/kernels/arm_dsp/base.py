"""What the arm_dsp kernels share: the target they need, checks of types, a layer's arithmetic as they want it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.kernels.kernel import Kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.graph import LayerView
    from stages.kernels.arm_dsp.rounding import Range
    from stages.targets.spec import Target

INT8_OFFSET = {"int8": 0, "uint8": 128}  # what is subtracted to make a value of the type an int8
MAX_DEPTH = 65535  # products of two int8 that an int32 sum takes, with as much again for the weights' zero point


class ArmDspKernel(Kernel):
    """A kernel that needs the DSP extension: Armv7E-M, or Armv8-M with it (MVE includes it)."""

    def why_not(self, view: LayerView, target: Target) -> str:
        architecture, *extensions = target.isa.split("+")
        if architecture != "armv7e-m" and not any(name == "dsp" or name.startswith("mve") for name in extensions):
            return "needs Thumb with the DSP extension"
        return self.why_not_layer(view, target)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        """The reason the kernel cannot compute the layer on a target that has the extension, '' when it can."""
        raise NotImplementedError


def not_eight_bit(view: LayerView, *, weights: bool = True) -> str:
    """Why the layer is not on 8-bit tensors of one type (with constant 8-bit weights), '' if it is."""
    tensors = (*view.inputs, *view.outputs)
    for tensor in tensors:
        if tensor.dtype not in INT8_OFFSET:
            return f"tensor {tensor.name} is {tensor.dtype}; this kernel is for int8 and uint8"
    if len({tensor.dtype for tensor in tensors}) > 1:
        return "int8 and uint8 tensors in one layer"
    if not weights:
        return ""
    if not view.has("weights"):
        return "the weights are not constant"
    dtype = str(view.constant("weights").dtype)
    return "" if dtype in INT8_OFFSET else f"weights are {dtype}, not int8 or uint8"


@dataclass(frozen=True)
class Arithmetic:
    """A layer's constants; arrays are int64 by channel, `doubled` and `rounders` int32 (rounding.py).

    weights            int8 values [channels, depth], 0 in channels that only give the zero point
    weight_zero_point  what is subtracted from them
    bias               with all that the input's zero point adds
    range              of the accumulators
    """

    weights: NDArray[np.int64]
    weight_zero_point: int
    bias: NDArray[np.int64]
    doubled: NDArray[np.int32]
    rounders: NDArray[np.int32]
    range: Range


def arithmetic(view: LayerView, weights: NDArray[np.int64]) -> Arithmetic:
    """The constants of a convolution or fully connected layer; `weights` are the layer's own values, [channels, depth].

    Activations reach the kernel as int8 (uint8 minus 128). Raises ValueError where rounding.py has no exact rounder.
    """
    import numpy as np

    from stages.kernels.arm_dsp import rounding

    op, dtype = view.op, view.inputs[0].dtype
    channels = len(weights)
    bias = view.constant("bias").astype(np.int64).reshape(-1) if view.has("bias") else np.zeros(channels, np.int64)
    multiplier, shift = (np.broadcast_to(view.constant(r).reshape(-1), (channels,)) for r in ("multiplier", "shift"))
    bounds = np.iinfo(dtype)
    centred = weights - op.weight_zero_point
    zero_point = op.input_zero_point
    acc = rounding.accumulator_range(centred, bias, int(bounds.min) - zero_point, int(bounds.max) - zero_point)
    p = rounding.rounders(multiplier, shift, acc, op.rounding)
    dead = p == 0
    offset = INT8_OFFSET[str(view.constant("weights").dtype)]
    folded = bias - (zero_point - INT8_OFFSET[dtype]) * centred.sum(1)
    signed = np.where(dead[:, None], op.weight_zero_point, weights) - offset
    live = rounding.Range(np.where(dead, 0, acc.low), np.where(dead, 0, acc.high))
    factors = np.where(dead, 0, rounding.doubled(multiplier)).astype(np.int32)
    return Arithmetic(signed, op.weight_zero_point - offset, np.where(dead, 0, folded), factors, p, live)


def splat(value: int) -> int:
    """A byte in every byte of an int32."""
    word = (value & 0xFF) * 0x01010101
    return word - (1 << 32) if word >= 1 << 31 else word


def clamp_fields(view: LayerView) -> tuple[int, int, int]:
    """zero_point, floor and low of the kernels' fields.

    A result is max(clamp(y + zero_point, 0, 255), floor) - floor + low. The zero point is moved so that the upper bound
    falls on 255, where usat16 stops; floor and low are in every byte.
    """
    op = view.op
    up = 255 - op.act_max
    return op.output_zero_point + up, splat(op.act_min + up), splat(op.act_min)
