"""Pack weights and per-channel constants for the generic micro-kernels.

Weights are always int8: 128 is subtracted from uint8 weights and their zero point. The input's zero point z is
folded into the bias, since sum((x - z) * (w - v)) = sum(x * (w - v)) - z * sum(w - v).
"""

from __future__ import annotations

from stages.backends.kernels.eight_bit import INT8_OFFSET, weight_zero_point
from stages.ir.graph import LayerView
from stages.support.lazy import np


def signed_weights(view: LayerView) -> tuple[np.ndarray, int]:
    """Return the weights as int8, in the graph's order, and their zero point."""
    weights = view.constant("weights")
    offset = INT8_OFFSET[str(weights.dtype)]
    return (weights.astype(np.int16) - offset).astype(np.int8), weight_zero_point(view)


PANEL = 8  # rows of a panel: FL_PANEL of gemm.h


def small_panel(columns: int) -> int:
    """Return the rows of the panel after those of eight, as in panel_1.h; 0 if there is none."""
    return {4: 4, 5: 5, 6: 5, 7: 7}.get(columns % PANEL, 0)


def panels(weights: np.ndarray) -> np.ndarray:
    """Return the rows of `weights` [columns, depth] in gemm.c's order.

    First interleaved panels of eight rows, then a smaller one, then the remaining rows.
    """
    columns, depth = weights.shape
    begin = columns - columns % PANEL
    end = begin + small_panel(columns)
    eights = weights[:begin].reshape(-1, PANEL, depth).transpose(0, 2, 1)
    return np.concatenate([eights.reshape(-1), weights[begin:end].T.reshape(-1), weights[end:].reshape(-1)])


def channels(view: LayerView, weights: np.ndarray, zero_point: int, input_zero_point: int) -> np.ndarray:
    """Return int32[O, 3]: bias, multiplier, shift.

    The bias has the input's zero point folded in (modulo 2^32).

    `weights` has the output channels on its first axis; `zero_point` is theirs.
    """
    count = weights.shape[0]
    sums = (weights.reshape(count, -1).astype(np.int64) - zero_point).sum(axis=1)
    bias = view.constant("bias").astype(np.int64).reshape(-1) if view.has("bias") else np.zeros(count, np.int64)
    folded = (bias - input_zero_point * sums).astype(np.uint64).astype(np.uint32).view(np.int32)
    multiplier, shift = (np.broadcast_to(view.constant(r).reshape(-1), (count,)) for r in ("multiplier", "shift"))
    return np.ascontiguousarray(np.stack([folded, multiplier, shift], axis=1).astype(np.int32))
