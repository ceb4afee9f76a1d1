"""Constants as the rvp kernels read them, and the proofs behind the short requantization.

The reference requantizes an accumulator in two roundings (`stages.graph.ops`, rounding `double`):
t = (acc * m + 2^30) >> 31, which is one kwmmul.u, then t / 2^s with halves away from zero, s = -shift. The kernels have
two ways for the second:

  short   smmul.u: (t * p + 2^31) >> 32, one instruction for all lanes
  wide    lower t by one where it is negative, then kwmmul.u by p = 2^(31 - s): three instructions, exact for all s in
          1 ... 31

With p = 2^(32 - s) the short way rounds halves towards plus infinity, which is wrong for negative t that lie on a half
(t = -(2k + 1) 2^(s - 1)). It is exact with one of these `p`, tried in order, over the range of t that weights, bias and
activations admit:

  0                  |t| < 2^(s - 1): the result is 0 (channels that died in training, s up to 31)
  2^(32 - s)         no negative half is in the range
  2^(32 - s) + 1     t * p is t too far from zero, in units of 2^-32: that turns a half away from zero and leaves all
                     else alone while |t| < 2^(32 - s). For s <= 12 a larger |t| is at least 2^(s + 8): the result is
                     256 or more and is clipped anyway, whatever its last bit

Layers that round once (rounding `single`: (acc * m + 2^(30 + s)) >> (31 + s)) take t = (acc * m) >> 32, one smmul, and
round t / 2^(s - 1) with halves towards plus infinity: short with p = 2^(33 - s) for s >= 3, wide (without lowering)
with p = 2^(32 - s) for s >= 2. The low half of the product does not matter: a half is a multiple of 2^32.

The short way also narrows results to 16 bits without saturation, so their range must fit, with the zero point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from stages.kernels.eight_bit import Range

# Register j of a block holds this channel of the block (plus 4 in the upper lane): the order in which bytes are packed.
COLUMN_CHANNEL = (0, 2, 1, 3)
WIDE_MARK = -(1 << 31)


def lanes(word_bits: int) -> int:
    """32-bit lanes of a register."""
    return word_bits // 32


def high_mul(acc: NDArray[np.int64], multiplier: NDArray[np.int64]) -> NDArray[np.int64]:
    """kwmmul.u: (acc * multiplier + 2^30) >> 31."""
    return (acc * multiplier + (1 << 30)) >> 31


@dataclass(frozen=True)
class Rounders:
    """Second roundings, int64 [channels]: the short `p` of each channel (-1 where there is none) and the wide one."""

    short: NDArray[np.int64]
    wide: NDArray[np.int64]


def rounders(multiplier: NDArray[np.int32], shift: NDArray[np.int32], acc: Range) -> Rounders:
    """Rounders of each channel. Raises ValueError for a multiplier of 1/2 or more (shift >= 0)."""
    m, s = multiplier.astype(np.int64), -shift.astype(np.int64)
    s = np.where(m == 0, 1, s)
    if s.min() < 1 or s.max() > 31:
        raise ValueError("shifts must be in [-31, -1]")
    low, high = high_mul(acc.low, m), high_mul(acc.high, m)
    size = np.maximum(np.abs(low), np.abs(high))
    half = np.int64(1) << (s - 1)
    fits = size < (np.int64(32767 - 512) << s)
    # The negative half nearest to zero within the range is at most min(high, -half); the next below is 2^s further.
    top = np.minimum(high, -half)
    nearest = -half - ((-half - top + (half << 1) - 1) // (half << 1)) * (half << 1)
    no_half = nearest < low
    small = size < (np.int64(1) << (32 - s))
    short = np.full_like(m, -1)
    usable = s >= 2
    short = np.where(usable & (small | (s <= 12)), (np.int64(1) << (32 - s)) + 1, short)
    short = np.where(usable & no_half, np.int64(1) << (32 - s), short)
    short = np.where(size < half, 0, short)
    return Rounders(np.where(fits, short, -1), np.int64(1) << (31 - s))


def rounders_once(multiplier: NDArray[np.int32], shift: NDArray[np.int32], acc: Range) -> Rounders:
    """The same for layers that round once. Raises ValueError for a multiplier of 1/4 or more (shift > -2)."""
    m, s = multiplier.astype(np.int64), -shift.astype(np.int64)
    s = np.where(m == 0, 2, s)
    if s.min() < 2 or s.max() > 31:
        raise ValueError("shifts must be in [-31, -2]")
    size = acc.size * m >> 31
    fits = size < (np.int64(32767 - 512) << s)
    short = np.where(s >= 3, np.int64(1) << (33 - s), -1)
    return Rounders(np.where(fits, short, -1), np.int64(1) << (32 - s))


def by_block(values: NDArray[np.int64], word_bits: int, blocks: int) -> NDArray[np.int64]:
    """[channels] -> [blocks, 4, lanes], channels in the order of the kernels' registers, zeros behind the last."""
    lane_count = lanes(word_bits)
    block = 4 * lane_count
    padded = np.zeros(blocks * block, values.dtype)
    padded[: len(values)] = values
    return padded.reshape(blocks, lane_count, 4).transpose(0, 2, 1)[:, COLUMN_CHANNEL, :]


def gemm_params(
    bias: NDArray[np.int64], multiplier: NDArray[np.int32], rounder: Rounders, word_bits: int, blocks: int
) -> NDArray[np.int32]:
    """params of gemm_s8.S: int32 [blocks, 3, 4, lanes] of bias, multiplier, rounder.

    A block is short when every channel in it can be; the first rounder of a wide block carries a mark in its sign (that
    of the register: the upper lane on RV64).
    """
    return _block_params(bias, multiplier, rounder, lambda values: by_block(values, word_bits, blocks))


def _block_params(
    bias: NDArray[np.int64],
    multiplier: NDArray[np.int32],
    rounder: Rounders,
    arrange: Callable[[NDArray[np.int64]], NDArray[np.int64]],
) -> NDArray[np.int32]:
    """int32 [blocks, 3, registers, lanes] of bias, multiplier, rounder; `arrange` lays channels out in blocks."""
    short, wide = arrange(rounder.short), arrange(rounder.wide)
    is_wide = np.any(short < 0, axis=(1, 2))
    p = np.where(is_wide[:, None, None], wide, short)
    p[is_wide, 0, -1] += WIDE_MARK
    return np.stack([arrange(bias), arrange(multiplier.astype(np.int64)), p], axis=1).astype(np.int32)


def gemm_weights(weights: NDArray[np.int8], zero_point: int, run: int, word_bits: int, blocks: int) -> NDArray[np.int8]:
    """int8 [channels, depth] -> [blocks, chunks, 4, lanes, 4].

    Each run of `run` elements of the depth starts a new chunk. The rest of a run's last chunk holds the zero point:
    what the panel has there counts nothing.
    """
    lane_count = lanes(word_bits)
    block = 4 * lane_count
    channels, depth = weights.shape
    run_chunks = -(-run // 4)
    runs = depth // run
    chunks = runs * run_chunks
    padded = np.full((blocks * block, runs, run_chunks * 4), zero_point, np.int8)
    padded[:channels, :, :run] = weights.reshape(channels, runs, run)
    split = padded.reshape(blocks, lane_count, 4, chunks, 4)[:, :, COLUMN_CHANNEL]
    return np.ascontiguousarray(split.transpose(0, 3, 2, 1, 4))


def unit_groups(units: int) -> list[int]:
    """Sizes of the groups of units that dot_rows.S computes at a time."""
    return [8] * (units // 8) + [size for size in (units & 4, units & 3) if size]


def rows_params(
    bias: NDArray[np.int64], multiplier: NDArray[np.int32], rounder: Rounders, word_bits: int
) -> NDArray[np.int32]:
    """params of dot_rows.S: int32 [quads, 3, 4] of bias, multiplier, rounder, units in order, zeros behind the last.

    A quad is short or wide as a whole; the last lane of its first register of rounders carries the mark.
    """

    def arrange(values: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.pad(values, (0, -len(values) % 4)).reshape(-1, 4 // lanes(word_bits), lanes(word_bits))

    return _block_params(bias, multiplier, rounder, arrange).reshape(-1, 3, 4)


def rows_weights(weights: NDArray[np.int8], zero_point: int, word_bits: int) -> NDArray[np.int8]:
    """int8 [units, depth] -> [units * steps * 4 * lanes]: each group of units as [steps, units, 4 * lanes].

    Behind the depth stands the zero point: what lies behind the end of the activations counts nothing.
    """
    units, depth = weights.shape
    register = 4 * lanes(word_bits)
    padded = np.pad(weights, ((0, 0), (0, -depth % register)), constant_values=zero_point)
    steps = padded.reshape(units, -1, register)
    groups = np.split(steps, np.cumsum(unit_groups(units))[:-1])
    return np.concatenate([group.transpose(1, 0, 2).reshape(-1) for group in groups])


def direct_params(
    bias: NDArray[np.int64], multiplier: NDArray[np.int32], rounder: Rounders, word_bits: int
) -> NDArray[np.int32]:
    """params of direct_s8.S: int32 [halves, 3, 2, lanes] of bias, multiplier, rounder; channels are whole blocks.

    A block is short or wide as a whole, and the mark is in the first rounder of both its halves.
    """
    blocks = len(bias) // (4 * lanes(word_bits))
    params = gemm_params(bias, multiplier, rounder, word_bits, blocks)
    is_wide = params[:, 2, 0, -1] < 0
    params[is_wide, 2, 2, -1] |= WIDE_MARK
    halves = params.reshape(blocks, 3, 2, 2, -1).transpose(0, 2, 1, 3, 4)
    return np.ascontiguousarray(halves).reshape(2 * blocks, 3, 2, -1)


def direct_weights(weights: NDArray[np.int8], word_bits: int) -> NDArray[np.int8]:
    """int8 [channels, taps, columns, depth] -> [halves, columns * chunks, taps, 2, lanes, 4], 0 behind the depth."""
    lane_count = lanes(word_bits)
    channels, taps, columns, depth = weights.shape
    blocks, chunks = channels // (4 * lane_count), -(-depth // 4)
    padded = np.zeros((channels, taps, columns, chunks * 4), np.int8)
    padded[..., :depth] = weights
    split = padded.reshape(blocks, lane_count, 4, taps, columns, chunks, 4)[:, :, COLUMN_CHANNEL]
    halves = split.reshape(blocks, lane_count, 2, 2, taps, columns, chunks, 4).transpose(0, 2, 5, 6, 4, 3, 1, 7)
    return np.ascontiguousarray(halves).reshape(2 * blocks, columns * chunks, taps, 2, lane_count, 4)


def clip_word(zero_point: int, lowest: int, highest: int, *, unsigned: bool) -> int:
    """The clip argument of the kernels, from the output's own integers: int32."""
    offset = 128 if unsigned else 0
    parts = [zero_point - offset, lowest - offset, highest - offset, 0x80 if unsigned else 0]
    word = sum((part & 0xFF) << (8 * index) for index, part in enumerate(parts))
    return word - (1 << 32) if word >= 1 << 31 else word


def depthwise_params(
    weights: NDArray[np.int64],
    bias: NDArray[np.int64],
    multiplier: NDArray[np.int32],
    rounder: Rounders,
    word_bits: int,
    *,
    split: bool = False,
) -> NDArray[np.int32]:
    """params of depthwise3x3_s8.S: int32 [groups, 4, 6, lanes] of three rows of weights, bias, multiplier, rounder.

    weights are [3, 3, channels], int8 values. `split`: they are sums of two int8, whose second addends' rows follow (9
    instead of 6). A group is short when every channel in it can be; the first rounder of a wide group carries the mark.
    """
    lane_count = lanes(word_bits)
    channels = weights.shape[2]
    groups = -(-channels // (4 * lane_count))
    addend = np.clip(weights, -128, 127)
    columns = [*_rows(addend), bias, multiplier.astype(np.int64), rounder.short, *_rows(weights - addend), rounder.wide]
    padded = np.zeros((10, groups * 4 * lane_count), np.int64)
    padded[:, :channels] = np.stack(columns)
    params = padded.reshape(10, groups, lane_count, 4).transpose(1, 3, 0, 2)
    is_wide = (params[:, :, 5] < 0).any(axis=(1, 2))
    params[is_wide, :, 5] = params[is_wide, :, 9]
    params[is_wide, 0, 5, -1] += WIDE_MARK
    return np.ascontiguousarray(params[:, :, : 9 if split else 6]).astype(np.int32)


def _rows(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """[3, 3, channels] -> [3, channels]: a row of the window in the bytes of a word, the fourth 0."""
    taps = weights & 0xFF
    return taps[:, 0] | taps[:, 1] << 8 | taps[:, 2] << 16


def window_params(
    weights: NDArray[np.int64],
    bias: NDArray[np.int64],
    multiplier: NDArray[np.int32],
    rounder: Rounders,
    word_bits: int,
    *,
    starts: tuple[int, ...],
    split: bool,
) -> NDArray[np.int32]:
    """params of depthwise_window.c: int32 [groups, 4, 3 + rows of words, lanes] of bias, multiplier, rounder, weights.

    weights are [rows, columns, channels]; `starts` are the columns at which the words of a row begin (what lies outside
    of the window is 0). `split`: weights are sums of two int8, whose second addends' rows follow. The first rounder of
    a wide group carries the mark.
    """
    lane_count = lanes(word_bits)
    channels = weights.shape[2]
    groups = -(-channels // (4 * lane_count))
    addend = np.clip(weights, -128, 127)
    rows = [_words(part, starts) for part in ((addend, weights - addend) if split else (addend,))]
    columns = np.concatenate([[bias, multiplier.astype(np.int64), rounder.short], *rows, [rounder.wide]])
    padded = np.zeros((len(columns), groups * 4 * lane_count), np.int64)
    padded[:, :channels] = columns
    params = padded.reshape(-1, groups, lane_count, 4).transpose(1, 3, 0, 2)
    is_wide = (params[:, :, 2] < 0).any(axis=(1, 2))
    params[is_wide, :, 2] = params[is_wide, :, -1]
    params[is_wide, 0, 2, -1] += WIDE_MARK
    return np.ascontiguousarray(params[:, :, :-1]).astype(np.int32)


def _words(weights: NDArray[np.int64], starts: tuple[int, ...]) -> NDArray[np.int64]:
    """[rows, columns, channels] -> [rows * words, channels]: for each start the four columns from there on."""
    rows, columns, channels = weights.shape
    before = -min(starts)
    padded = np.zeros((rows, before + max(columns, max(starts) + 4), channels), np.int64)
    padded[:, before : before + columns] = weights & 0xFF
    words = [sum(padded[:, before + start + i] << (8 * i) for i in range(4)) for start in starts]
    return np.stack(words, axis=1).reshape(rows * len(starts), channels)
