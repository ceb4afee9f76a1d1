"""What the MVE kernels share: the target they need, the checks of types and layouts, and a layer's constants."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.kernels.eight_bit import INT8_OFFSET, accumulator_range, why_not_nhwc
from stages.kernels.generic.base import MAX_DEPTH, bad_weights, not_eight_bit
from stages.kernels.kernel import Kernel

if TYPE_CHECKING:
    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.mve.rounding import Mode
    from stages.targets.spec import Target


class MveKernel(Kernel):
    """A kernel for Armv8.1-M with the integer vectors, on 8-bit tensors of one type in NHWC."""

    def why_not(self, view: LayerView, target: Target) -> str:
        if not any(name.startswith("mve") for name in target.isa.split("+")):
            return "needs Armv8.1-M with MVE"
        return not_eight_bit(view) or why_not_nhwc(view) or self.why_not_layer(view)

    @abstractmethod
    def why_not_layer(self, view: LayerView) -> str:
        """The reason the kernel cannot compute a layer of 8-bit NHWC tensors, '' when it can."""


@dataclass(frozen=True)
class Arithmetic:
    """The constants of a layer with weights.

    weights            [channels, depth], as given
    weight_zero_point  what is subtracted from them
    mode               of rounding.py
    params             int32 [3, channels]: bias with the input's zero point folded in, multiplier, rounder
    """

    weights: np.ndarray
    weight_zero_point: int
    mode: Mode
    params: np.ndarray


def arithmetic(view: LayerView, weights: np.ndarray, weight_zero_point: int, *, lowered: bool = False) -> Arithmetic:
    """The constants of a layer with `weights` [channels, depth]; `lowered` prefers that mode.

    Activations reach the kernel as int8 (uint8 minus 128).

    Raises ValueError where rounding.py has no way.
    """
    import numpy as np

    from stages.kernels.generic import packing
    from stages.kernels.mve import rounding

    op, dtype = view.op, view.inputs[0].dtype
    bias = view.constant("bias").astype(np.int64).reshape(-1) if view.has("bias") else np.zeros(len(weights), np.int64)
    bounds = np.iinfo(dtype)
    centred = weights.astype(np.int64) - weight_zero_point
    zero_point = op.input_zero_point
    size = accumulator_range(centred, bias, int(bounds.min) - zero_point, int(bounds.max) - zero_point).size
    folded, multiplier, shift = packing.channels(view, weights, weight_zero_point, zero_point - INT8_OFFSET[dtype]).T
    how = rounding.requantization(multiplier, shift, size, op.rounding, lowered=lowered)
    return Arithmetic(weights, weight_zero_point, how.mode, np.stack([folded, multiplier, how.rounders]))


def bad_layer(view: LayerView, depth: int) -> str:
    """Why the weights, or the depth of the sums, are not what the kernels take."""
    if bad := bad_weights(view):
        return bad
    return f"a sum has {depth} products; int32 holds {MAX_DEPTH}" if depth > MAX_DEPTH else ""
