"""FFT tables of log-mel kernels with butterflies in lanes (include/log_mel_lanes.h)."""

from __future__ import annotations

from stages.ir.arithmetic.mel import digit_reversed, radices, sines
from stages.ir.arrays import Array
from stages.support.lazy import np


def lane_tables(window: Array, fft_length: int, lanes: int, first_bin: int) -> dict[str, Array]:
    """Return window, places and factors. Factors of the real spectrum begin with `first_bin`."""
    points = fft_length // 2
    radix = radices(points)[0]
    padded = np.pad(window, (0, fft_length - len(window))).reshape(radix, -1, lanes, 2)
    return {
        "window": padded.transpose(1, 0, 3, 2).reshape(-1),
        "places": _places(points),
        "factors": _factors(fft_length, lanes, first_bin),
    }


def _places(points: int) -> Array:
    """Return the first result of each butterfly of the first stage, uint16[points / radix]."""
    radix = radices(points)[0]
    places = np.zeros(points // radix, np.uint16)
    places[digit_reversed(points)[::radix]] = np.arange(0, points, radix)
    return places


def _factors(length: int, lanes: int, first_bin: int) -> Array:
    """Return cosines and sines of the stages after the first, then of the real spectrum.

    int32, `lanes` at a time.
    """
    table, parts, points = sines(length), [], length // 2
    size, *rest = radices(points)
    for radix in rest:
        j = np.arange(max(size, lanes)) % size
        turns = [length // (radix * size) * q * j for q in range(1, radix)]
        parts += _pairs(table, turns, lanes)
        size *= radix
    bins = first_bin + np.arange(points // 2)
    return np.concatenate([*parts, *_pairs(table, [bins], lanes)])


def _pairs(table: Array, turns: list[Array], lanes: int) -> list[Array]:
    """Return for each `lanes` values the cosine and the sine of each turn."""
    length = len(table)
    both = [part for turn in turns for part in (table[(turn + length // 4) % length], table[turn % length])]
    return [np.stack(both).reshape(len(both), -1, lanes).transpose(1, 0, 2).reshape(-1)]
