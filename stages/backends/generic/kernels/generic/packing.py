"""Weights and per-channel constants as the generic micro-kernels read them.

Weights are always int8: uint8 weights w become w - 128, and so does their zero point. The input's zero point z is
folded into the bias, since sum((x - z) * (w - v)) = sum(x * (w - v)) - z * sum(w - v).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stages.backends.kernels.eight_bit import INT8_OFFSET, weight_zero_point

if TYPE_CHECKING:
    from stages.ir.graph import LayerView


def signed_weights(view: LayerView) -> tuple[np.ndarray, int]:
    """The weights as int8, in the graph's order, and the zero point that goes with them."""
    weights = view.constant("weights")
    offset = INT8_OFFSET[str(weights.dtype)]
    return (weights.astype(np.int16) - offset).astype(np.int8), weight_zero_point(view)


PANEL = 8  # rows of a panel: FL_PANEL of gemm.h


def panels(weights: np.ndarray) -> np.ndarray:
    """Rows of `weights` [columns, depth] as gemm.c wants them: interleaved panels of eight, then the rows left over."""
    columns, depth = weights.shape
    whole = columns - columns % PANEL
    interleaved = weights[:whole].reshape(-1, PANEL, depth).transpose(0, 2, 1)
    return np.concatenate([interleaved.reshape(-1), weights[whole:].reshape(-1)])


def channels(view: LayerView, weights: np.ndarray, zero_point: int, input_zero_point: int) -> np.ndarray:
    """int32[O, 3]: bias with the input's zero point folded in (modulo 2^32), multiplier, shift.

    `weights` has the output channels on its first axis; `zero_point` is theirs.
    """
    count = weights.shape[0]
    sums = (weights.reshape(count, -1).astype(np.int64) - zero_point).sum(axis=1)
    bias = view.constant("bias").astype(np.int64).reshape(-1) if view.has("bias") else np.zeros(count, np.int64)
    folded = (bias - input_zero_point * sums).astype(np.uint64).astype(np.uint32).view(np.int32)
    multiplier, shift = (np.broadcast_to(view.constant(r).reshape(-1), (count,)) for r in ("multiplier", "shift"))
    return np.ascontiguousarray(np.stack([folded, multiplier, shift], axis=1).astype(np.int32))
