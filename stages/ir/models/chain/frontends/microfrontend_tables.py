"""Tables of microfrontend, as its C code computes them in float32.

Source: tensorflow/lite/experimental/microfrontend/lib of TFLM.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.ir.arrays import Array
from stages.ir.models.chain.frontends.float_log import log1p
from stages.ir.models.chain.frontends.microfrontend import FILTER_BITS
from stages.support.messages.stage_error import StageError

WINDOW_BITS = 12  # after the point
_BLOCK, _ALIGNMENT = 4, 2  # weights per block; a filter starts at a multiple of the alignment
_INTERVALS = 32  # of the gains, one per power of two
_LARGEST = 0x7FFF


@dataclass(frozen=True)
class FilterBank:
    """Mel filters as inputs of SignalFilterBank, in its order.

    It reads the spectrum bins `start` to `end` - 1.
    """

    tables: dict[str, Array]
    start: int
    end: int


def window(size: int) -> Array:
    """Return the Hann window, int16[size] with WINDOW_BITS (window_util.c)."""
    step = np.float32(np.float32(np.pi) * np.float32(2)) / np.float32(size)
    angles = step * (np.arange(size, dtype=np.float32) + np.float32(0.5))
    cosines = np.cos(angles.astype(np.float64)).astype(np.float32)
    return _rounded(np.float32(0.5) - np.float32(0.5) * cosines, WINDOW_BITS)


def filter_bank(channels: int, lower_hz: float, upper_hz: float, sample_rate: int, fft_length: int) -> FilterBank:
    """Return the mel filters (filterbank_util.c).

    A bin between two centers adds to both channels: its weight to the upper one, its
    unweight to the lower one. Raises StageError for filters above the spectrum.
    """
    low, high = _mel(np.float32(lower_hz)), _mel(np.float32(upper_hz))
    spacing = np.float32((high - low) / np.float32(channels + 1))
    centers = (low + spacing * np.arange(1, channels + 2, dtype=np.float32)).astype(np.float32)
    hz_per_bin = np.float32(0.5) * np.float32(sample_rate) / np.float32(fft_length // 2)
    mels = _mel(np.arange(fft_length // 2 + 2).astype(np.float32) * hz_per_bin)
    bounds = [int(np.float32(1.5) + np.float32(lower_hz) / hz_per_bin)]
    for center in centers:
        bounds.append(max(bounds[-1], int(np.searchsorted(mels, center, side="right"))))
    if bounds[-1] > fft_length // 2:
        raise StageError(f"the last of {channels} filters ends above the spectrum", hint="Lower upper_hz.")
    rows = [_row(bounds[k], bounds[k + 1], centers[k - 1] if k else low, centers[k], mels) for k in range(channels + 1)]
    places = np.cumsum([0, *(len(weights) for _, weights, _ in rows)])[:-1]
    is_empty = np.diff(bounds) == 0
    if is_empty.any():  # empty filters share a block of zeros, which comes first
        places = np.where(is_empty, 0, places - _BLOCK * np.cumsum(is_empty) + _BLOCK)
        rows = [(0, np.zeros(_BLOCK, np.int16), np.zeros(_BLOCK, np.int16)), *rows]
        used = [True, *~is_empty]
    else:
        used = [True] * len(rows)
    tables = {
        name: np.concatenate([row[at] for row, is_used in zip(rows, used, strict=True) if is_used])
        for at, name in ((1, "weights"), (2, "unweights"))
    }
    filters = rows[len(rows) - channels - 1 :]
    tables["starts"] = np.array([start for start, _, _ in filters], np.int16)
    tables["places"] = places.astype(np.int16)
    tables["widths"] = np.array([len(weights) for _, weights, _ in filters], np.int16)
    return FilterBank(tables, bounds[0], bounds[-1])


def _row(first: int, end: int, below: np.float32, center: np.float32, mels: Array) -> tuple[int, Array, Array]:
    """Return first bin, weights and unweights of a filter, zero-padded to blocks."""
    if first == end:
        return 0, np.zeros(_BLOCK, np.int16), np.zeros(_BLOCK, np.int16)
    start = first // _ALIGNMENT * _ALIGNMENT
    ramp = (center - mels[first:end]) / np.float32(center - below)
    padding = (first - start, -(end - start) % _BLOCK)
    weights, unweights = (np.pad(_rounded(values, FILTER_BITS), padding) for values in (ramp, np.float32(1) - ramp))
    return start, weights, unweights


def gains(strength: float, offset: float, bits: int, point: int) -> Array:
    """Return PCAN's gains, int16[125]: a parabola per power of two (pcan_gain_control_util.c).

    A gain is 2**bits * (noise / 2**point + offset) ** -strength.
    """

    def gain(noise: int) -> int:
        base = np.float32(np.float32(noise) / np.float32(2.0**point)) + np.float32(offset)
        power = np.float32(float(base) ** -float(np.float32(strength)))
        scaled = np.float32(2.0**bits) * power
        return _LARGEST if scaled > _LARGEST else int(scaled + np.float32(0.5))

    table = np.zeros(4 * _INTERVALS - 3, np.int16)
    table[:2] = gain(0), gain(1)
    for interval in range(2, _INTERVALS + 1):
        start = 1 << (interval - 1)
        end = 2 * start - 1 if interval == _INTERVALS else 2 * start
        y0, y1, y2 = (gain(noise) for noise in (start, start + (start >> 1), end))
        linear = 4 * (y1 - y0) - (y2 - y0)
        table[4 * interval - 6 : 4 * interval - 3] = np.array([y0, linear, y2 - y0 - linear]).astype(np.int16)
    return table


def _mel(hz: Any) -> Any:
    """Return the mel value of a frequency, rounded to float32 in each step."""
    return np.float32(1127) * log1p(np.float32(hz) / np.float32(700))


def _rounded(values: Array, bits: int) -> Array:
    """Return floor(values * 2**bits + 1/2) as int16."""
    return np.asarray(np.floor(values * np.float32(1 << bits) + np.float32(0.5)).astype(np.int16))
