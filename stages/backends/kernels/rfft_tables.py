"""Tables of int16 FFTs of a power of two, in the order in which kernels read them."""

from __future__ import annotations

from itertools import pairwise

from stages.ir.arithmetic.kissfft import factors, real_twiddles, twiddles
from stages.ir.arrays import Array
from stages.support.lazy import np


def first_places(numbers: int) -> Array:
    """Return the first result of each butterfly of stage 1, by input (rfft16_image.h)."""
    radices = factors(numbers)
    places = np.zeros(1, np.int64)
    step = numbers
    for radix in radices[:-1]:
        step //= radix
        places = (places + step * np.arange(radix)[:, None]).reshape(-1)
    return places.astype(np.uint16)


def factors_in_order(numbers: int, lanes: int) -> Array:
    """Return twiddle factors of all stages, then of the real spectrum (rfft16_image.h)."""
    parts = []
    for m in _sizes(numbers):
        factors_of_stage = _of_stage(numbers, m, np.arange(lanes % 2, m))
        parts.append(factors_of_stage.reshape(3, -1, lanes).transpose(1, 0, 2).reshape(-1))
    behind = _words(real_twiddles(numbers, "int16"))
    return np.concatenate([*parts, behind if lanes == 1 else np.pad(behind, 1)])


def block_places(numbers: int) -> Array:
    """Return the offset of the first result of each four blocks, in bytes.

    For the last stage of mve/rfft.c, from the start of the spectrum.
    """
    return (4 * _block_frequencies(numbers)[-1][::4]).astype(np.uint16)


def block_factors(numbers: int) -> Array:
    """Return twiddle factors of all blocks and stages, then of the real spectrum (mve/rfft.c)."""
    *stages, last = [_of_stage(numbers, len(each), each) for each in _block_frequencies(numbers)]
    parts = [stage[:, 1:].T.reshape(-1) for stage in stages]
    parts.append(last.reshape(3, -1, 4).transpose(1, 0, 2).reshape(-1))
    return np.concatenate([*parts, _words(real_twiddles(numbers, "int16"))])


def _sizes(numbers: int) -> list[int]:
    """Return the FFT sizes that each stage after the first combines by four."""
    sizes, size = [], factors(numbers)[-1]
    while size < numbers:
        sizes.append(size)
        size *= 4
    return sizes


def _block_frequencies(numbers: int) -> list[Array]:
    """Return the frequencies of the blocks of each stage after the first, in memory order."""
    sizes = [1, *_sizes(numbers)]
    frequencies, per_stage = np.zeros(1, np.int64), []
    for size, larger in pairwise(sizes):
        frequencies = (frequencies[:, None] + size * np.arange(larger // size)).reshape(-1)
        per_stage.append(frequencies)
    return per_stage


def _of_stage(numbers: int, size: int, k: Array) -> Array:
    """Return the factors of inputs 1, 2, 3 of a stage that combines FFTs of `size`, [3, k]."""
    table = _words(twiddles(numbers, numbers, "int16"))
    return np.stack([table[(numbers // (4 * size) * way * k) % numbers] for way in (1, 2, 3)])


def _words(pairs: Array) -> Array:
    """Return int16 [n, 2] as uint32 [n], the real part in the low half."""
    low, high = pairs.astype(np.int64).T & 0xFFFF
    return (low | high << 16).astype(np.uint32)
