"""The FFT of TFLM's signal operators: KissFFT's mixed radix, in int16, int32 or float32.

Fixed point: numbers have 15 or 31 fractional bits. Each stage of radix p first multiplies by the integer quotient
MAX / p, so that sums fit; each product is rounded half up; sums that do not fit wrap.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from stages.ir.arrays import Array
from stages.support.lazy import np

Pair = tuple[Array, Array]  # real and imaginary parts

RADICES = (4, 2, 3, 5)
_FRACTION_BITS = {"int16": 15, "int32": 31}


def factors(length: int) -> list[int]:
    """Return the radices of a complex FFT, outermost first: fours, then a two, threes, fives.

    Raises ValueError for a length with other factors, and below 2: KissFFT as TFLM builds it crashes on them.
    """
    radices, rest = [], length
    for radix in RADICES:
        while rest % radix == 0 and rest > 1:
            radices.append(radix)
            rest //= radix
    if rest > 1 or length < 2:
        raise ValueError(f"an FFT of {length} numbers; its length must be a product of 2, 3 and 5")
    return radices


def first_order(length: int) -> Array:
    """Return the input index of each number of the first stage, uint16[length]."""
    order = np.zeros(1, np.int64)
    for radix in reversed(factors(length)):
        order = np.concatenate([order * radix + k for k in range(radix)])
    return order.astype(np.uint16)


def twiddles(count: int, length: int, dtype: str, *, inverse: bool = False) -> Array:
    """Return exp(-2 pi i k / length), k < count, [count, 2]; inverse: the conjugates."""
    sign = -1.0 if inverse else 1.0
    return _rounded([sign * (-2 * math.pi * k / length) for k in range(count)], dtype)


def real_twiddles(length: int, dtype: str, *, inverse: bool = False) -> Array:
    """Return the twiddles of an FFT of 2 * length real numbers, [length // 2, 2]."""
    sign = -1.0 if inverse else 1.0
    return _rounded([sign * (-math.pi * ((k + 1) / length + 0.5)) for k in range(length // 2)], dtype)


def _rounded(phases: list[float], dtype: str) -> Array:
    pairs = [(math.cos(phase), math.sin(phase)) for phase in phases]
    if dtype == "float32":
        return np.array(pairs, np.float32).reshape(-1, 2)
    largest = (1 << _FRACTION_BITS[dtype]) - 1
    return np.array([[math.floor(0.5 + largest * part) for part in pair] for pair in pairs], dtype).reshape(-1, 2)


@dataclass(frozen=True)
class _Arithmetic:
    """Arithmetic of a type: stored numbers, products, halves, division before a stage."""

    store: Callable[[Array], Array]
    product: Callable[[Array], Array]
    half: Callable[[Array], Array]
    divided: Callable[[Array, int], Array]

    def times(self, a: Pair, b: Pair) -> Pair:
        """Return the complex product."""
        return self.product(a[0] * b[0] - a[1] * b[1]), self.product(a[0] * b[1] + a[1] * b[0])

    def scaled(self, a: Pair, radix: int) -> Pair:
        """Return the pair divided for a stage."""
        return self.divided(a[0], radix), self.divided(a[1], radix)

    def plus(self, a: Pair, b: Pair) -> Pair:
        """Return the sum."""
        return self.store(a[0] + b[0]), self.store(a[1] + b[1])

    def minus(self, a: Pair, b: Pair) -> Pair:
        """Return the difference."""
        return self.store(a[0] - b[0]), self.store(a[1] - b[1])


@cache
def _arithmetic(dtype: str) -> _Arithmetic:
    if dtype == "float32":
        same: Callable[[Array], Array] = lambda x: x  # noqa: E731
        return _Arithmetic(same, same, lambda x: x * np.float32(0.5), lambda x, _: x)
    bits = _FRACTION_BITS[dtype]

    def store(x: Array) -> Array:
        return x.astype(dtype).astype(np.int64)

    def product(x: Array) -> Array:
        return store((x + (1 << bits - 1)) >> bits)

    def half(x: Array) -> Array:
        return store((x if dtype == "int16" else store(x)) >> 1)

    return _Arithmetic(store, product, half, lambda x, radix: product(x * (((1 << bits) - 1) // radix)))


def fft(x: Pair, dtype: str, *, inverse: bool = False) -> Pair:
    """Return the FFT over the last axis. Arrays are int64, or float32 for float32."""
    length = x[0].shape[-1]
    table = twiddles(length, length, dtype, inverse=inverse)
    wide = table if dtype == "float32" else table.astype(np.int64)
    return _stage(x, factors(length), 1, (wide[:, 0], wide[:, 1]), _arithmetic(dtype), inverse=inverse)


def _stage(x: Pair, radices: list[int], stride: int, table: Pair, a: _Arithmetic, *, inverse: bool) -> Pair:
    """Return the FFT by `radices[0]` FFTs of every radix-th number; `stride`: table step."""
    radix, *rest = radices
    parts = [(x[0][..., k::radix], x[1][..., k::radix]) for k in range(radix)]
    if rest:
        parts = [_stage(part, rest, stride * radix, table, a, inverse=inverse) for part in parts]
    each = np.arange(parts[0][0].shape[-1])

    def factor(index: Any) -> Pair:
        return table[0][index], table[1][index]

    first, *others = [a.scaled(part, radix) for part in parts]
    turned = [a.times(part, factor(stride * (q + 1) * each)) for q, part in enumerate(others)]
    outputs = _BUTTERFLIES[radix]([first, *turned], a, lambda k: factor(stride * k * len(each)), inverse)
    return np.concatenate([part[0] for part in outputs], -1), np.concatenate([part[1] for part in outputs], -1)


def _two(x: list[Pair], a: _Arithmetic, factor: Any, inverse: bool) -> list[Pair]:
    return [a.plus(x[0], x[1]), a.minus(x[0], x[1])]


def _four(x: list[Pair], a: _Arithmetic, factor: Any, inverse: bool) -> list[Pair]:
    difference, total = a.minus(x[0], x[2]), a.plus(x[0], x[2])
    outer, crossed = a.plus(x[1], x[3]), a.minus(x[1], x[3])
    turned = (crossed[1], -crossed[0])
    up, down = a.plus(difference, turned), a.minus(difference, turned)
    if inverse:
        up, down = down, up
    return [a.plus(total, outer), up, a.minus(total, outer), down]


def _three(x: list[Pair], a: _Arithmetic, factor: Any, inverse: bool) -> list[Pair]:
    total, difference = a.plus(x[1], x[2]), a.minus(x[1], x[2])
    middle = a.store(x[0][0] - a.half(total[0])), a.store(x[0][1] - a.half(total[1]))
    sine = factor(1)[1]
    turned = a.product(difference[0] * sine), a.product(difference[1] * sine)
    last = a.store(middle[0] + turned[1]), a.store(middle[1] - turned[0])
    return [a.plus(x[0], total), (a.store(middle[0] - turned[1]), a.store(middle[1] + turned[0])), last]


def _five(x: list[Pair], a: _Arithmetic, factor: Any, inverse: bool) -> list[Pair]:
    first, second = factor(1), factor(2)
    outer, crossed = a.plus(x[1], x[4]), a.minus(x[1], x[4])
    inner, inner_crossed = a.plus(x[2], x[3]), a.minus(x[2], x[3])
    total = a.store(x[0][0] + (outer[0] + inner[0])), a.store(x[0][1] + (outer[1] + inner[1]))

    def even(p: Pair, q: Pair) -> Pair:
        real = a.store(x[0][0] + a.product(outer[0] * p[0]) + a.product(inner[0] * q[0]))
        return real, a.store(x[0][1] + a.product(outer[1] * p[0]) + a.product(inner[1] * q[0]))

    five = even(first, second)
    six = (
        a.store(a.product(crossed[1] * first[1]) + a.product(inner_crossed[1] * second[1])),
        a.store(-a.product(crossed[0] * first[1]) - a.product(inner_crossed[0] * second[1])),
    )
    eleven = even(second, first)
    twelve = (
        a.store(-a.product(crossed[1] * second[1]) + a.product(inner_crossed[1] * first[1])),
        a.store(a.product(crossed[0] * second[1]) - a.product(inner_crossed[0] * first[1])),
    )
    return [total, a.minus(five, six), a.plus(eleven, twelve), a.minus(eleven, twelve), a.plus(five, six)]


_BUTTERFLIES: dict[int, Callable[[list[Pair], _Arithmetic, Any, bool], list[Pair]]] = {
    2: _two,
    3: _three,
    4: _four,
    5: _five,
}


def _wide(x: Array) -> Array:
    return x if x.dtype == np.float32 else x.astype(np.int64)


def real_fft(x: Array, length: int) -> Array:
    """Return the FFT of real numbers, [..., length // 2 + 1, 2].

    x is [..., at most length]. It is padded with zeros.
    """
    dtype, a, half = str(x.dtype), _arithmetic(str(x.dtype)), length // 2
    padded = np.zeros((*x.shape[:-1], length), x.dtype)
    padded[..., : x.shape[-1]] = x
    wide = _wide(padded)
    real, imaginary = fft((wide[..., ::2], wide[..., 1::2]), dtype)
    result = np.zeros((*x.shape[:-1], half + 1, 2), real.dtype)
    ends = a.scaled((real[..., 0], imaginary[..., 0]), 2)
    result[..., 0, 0], result[..., half, 0] = a.store(ends[0] + ends[1]), a.store(ends[0] - ends[1])
    k = np.arange(1, half // 2 + 1)
    low = a.scaled((real[..., k], imaginary[..., k]), 2)
    high = a.scaled((real[..., half - k], a.store(-imaginary[..., half - k])), 2)
    total, difference = a.plus(low, high), a.minus(low, high)
    table = _wide(real_twiddles(half, dtype))
    turned = a.times(difference, (table[:, 0], table[:, 1]))
    result[..., k, 0], result[..., k, 1] = a.half(total[0] + turned[0]), a.half(total[1] + turned[1])
    result[..., half - k, 0] = a.half(total[0] - turned[0])
    result[..., half - k, 1] = a.half(turned[1] - total[1])
    return result.astype(x.dtype)


def inverse_real_fft(x: Array) -> Array:
    """Return the reals [..., 2 * (bins - 1)] of x [..., bins, 2], not divided by their number."""
    dtype, a, half = str(x.dtype), _arithmetic(str(x.dtype)), x.shape[-2] - 1
    real, imaginary = _wide(x[..., 0]), _wide(x[..., 1])
    inner = np.zeros((*x.shape[:-2], half), real.dtype), np.zeros((*x.shape[:-2], half), real.dtype)
    ends = a.store(real[..., 0] + real[..., half]), a.store(real[..., 0] - real[..., half])
    inner[0][..., 0], inner[1][..., 0] = a.scaled(ends, 2)
    k = np.arange(1, half // 2 + 1)
    low = a.scaled((real[..., k], imaginary[..., k]), 2)
    high = a.scaled((real[..., half - k], a.store(-imaginary[..., half - k])), 2)
    even, difference = a.plus(low, high), a.minus(low, high)
    table = _wide(real_twiddles(half, dtype, inverse=True))
    odd = a.times(difference, (table[:, 0], table[:, 1]))
    up, down = a.plus(even, odd), a.minus(even, odd)
    inner[0][..., k], inner[1][..., k] = up
    inner[0][..., half - k], inner[1][..., half - k] = down[0], a.store(-down[1])
    real, imaginary = fft(inner, dtype, inverse=True)
    return np.stack([real, imaginary], -1).reshape(*x.shape[:-2], 2 * half).astype(x.dtype)
