"""Weights of gemm.S and dot.S as words, and when the faster form is exact.

A word holds the weights of two elements of the depth for a pair of channels A and B:

  ab      halfwords 256 * b + a
  bytes   a, b of the first element, a, b of the second
"""

from __future__ import annotations

from typing import Literal

from stages.backends.cortex_m.kernels.arm_dsp.base import Arithmetic
from stages.support.lazy import np, npt

Packing = Literal["ab", "bytes"]


def run_steps(count: int) -> list[tuple[int, int]]:
    """Return the elements of each step of a run (panel.h); -1 for none."""
    whole = count - count % 4
    steps = [step for k in range(0, whole, 4) for step in ((k, k + 2), (k + 1, k + 3))]
    return steps + [(k, k + 1 if k + 1 < count else -1) for k in range(whole, count, 2)]


def depth_steps(depth: int, run: int) -> npt.NDArray[np.int64]:
    """Return [steps, 2]: depth elements of each step for runs of `run` elements; -1: none."""
    steps_of_run = np.array(run_steps(run), np.int64)
    starts = np.arange(0, depth, run)[:, None, None]
    return np.where(steps_of_run < 0, -1, steps_of_run + starts).reshape(-1, 2)


def depth_steps_of_fours(depth: int) -> npt.NDArray[np.int64]:
    """Return depth steps for dot.S; an incomplete group of four is ordered as a full one."""
    elements = np.array(run_steps(-(-depth // 4) * 4), np.int64)
    return np.where(elements < depth, elements, -1)


def plane_steps(depth: int) -> npt.NDArray[np.int64]:
    """Return depth steps for planes: pairs of consecutive elements."""
    first = np.arange(0, depth, 2)
    return np.stack([first, np.where(first + 1 < depth, first + 1, -1)], 1)


def channel_pairs(channels: int) -> npt.NDArray[np.int64]:
    """Return [pairs, 2] neighbours; an odd last channel pairs with the one before it."""
    first = np.minimum(np.arange(0, channels, 2), channels - 2)
    return np.stack([first, first + 1], 1)


def form(constants: Arithmetic, pairs: npt.NDArray[np.int64]) -> Packing:
    """Return the weight form, `ab` where it is exact.

    It is exact if 256 * b + a fits int16, 256 * B + A fits int32, and the weights have no zero point.
    """
    a, b = constants.weights[pairs[:, 0]], constants.weights[pairs[:, 1]]
    if constants.weight_zero_point or (256 * b + a).min() < -(1 << 15):
        return "bytes"
    return "ab" if constants.range.size.max() < 1 << 23 else "bytes"


def weight_words(
    weights: npt.NDArray[np.int64], steps: npt.NDArray[np.int64], pairs: npt.NDArray[np.int64], how: Packing
) -> npt.NDArray[np.int32]:
    """int8 values [channels, depth] -> int32 [pairs, steps]; 0 where a step has no element."""
    padded = np.concatenate([weights, np.zeros((len(weights), 1), np.int64)], 1)
    chosen = padded[:, steps]  # [channels, steps, 2]
    a, b = chosen[pairs[:, 0]], chosen[pairs[:, 1]]
    halves = 256 * b + a if how == "ab" else (a & 0xFF) + 256 * b
    return half_words(halves)


def bias_words(bias: npt.NDArray[np.int64], pairs: npt.NDArray[np.int64], how: Packing) -> npt.NDArray[np.int32]:
    """Return int32 [pairs, 2]: the start values of the sums, modulo 2^32."""
    a, b = bias[pairs[:, 0]], bias[pairs[:, 1]]
    return np.stack([a, 256 * b + a if how == "ab" else b], 1).astype(np.uint64).astype(np.uint32).view(np.int32)


def scale_words(scale: npt.NDArray[np.int32], pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """[channels, words] -> [pairs, 2 * words]: each word of A, then of B."""
    return scale[pairs].transpose(0, 2, 1).reshape(len(pairs), -1)


def half_words(halves: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """int16 values [..., 2] -> int32 words, the first in the lower half."""
    return ((halves[..., 0] & 0xFFFF) | (halves[..., 1] & 0xFFFF) << 16).astype(np.uint32).view(np.int32)
