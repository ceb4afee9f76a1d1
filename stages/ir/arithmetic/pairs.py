"""Fixed-point constants that reproduce float32 sums and products of two int8 numbers.

ONNX Runtime adds and multiplies in float32, in a different way for each operator, and rounds halves to even. There are
65,536 pairs of int8 numbers, so the integer operators (ADD, SUB, MUL in stages.ir.operators) are compared for all
pairs. Multipliers near the real ones are tried, and those with the fewest different pairs are selected:

- Usually no pair differs.
- One or two pairs differ where float32's roundings contradict each other.
- Many pairs differ where real numbers are exact halves, which float32 rounds to even.

If the quotients of scales have few bits, such as 1/2 or 3/4, sums and products are exact (`Halves`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import floor, frexp
from typing import Literal

import numpy as np

from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier
from stages.ir.arrays import Array

LEFT_SHIFT = 20
Quant = tuple[float, int]
Fixed = tuple[int, int]
_TRIED, _SEED, _SPREAD = 4096, 1, 600  # candidates, seed, largest distance from the nearest multiplier
_BEST = 8  # candidates that are compared for all pairs
TOLERATED = 16  # pairs of 65,536
_SAMPLED = 2048  # deciding pairs: if all candidates fail on these, the search ends
_CLOSE = 2.0**-12  # distance to a half below which a pair is a deciding one
_FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
_ALL = np.arange(-128, 128, dtype=np.int64)
_MOST_BITS = 20  # of factors and shifts: two products with 9 bits, and a half, are within int32


@dataclass(frozen=True)
class Pair:
    """Addition, subtraction or multiplication (`op`: add, sub, mul) of int8 numbers.

    first, second, out  scales and zero points
    low, high           bounds of the result
    lowered             difference between ONNX' integers and these (128 for uint8); None if the operands are
                        dequantized one by one, which QLinear operators do not do
    """

    op: str
    first: Quant
    second: Quant
    out: Quant
    low: int = -128
    high: int = 127
    lowered: int | None = None

    @property
    def is_product(self) -> bool:
        """True for a multiplication: one multiplier scales the product."""
        return self.op == "mul"

    def expected(self, a: Array, b: Array) -> Array:
        """Return ONNX Runtime's results: each step in float32."""
        if self.lowered is not None:
            rounded = np.rint(self._at_once(a + self.lowered, b + self.lowered)).astype(np.float64) - self.lowered
            return np.asarray(np.clip(rounded, self.low, self.high), np.int64)
        left, right = (
            (x - zero).astype(np.float32) * np.float32(scale)
            for x, (scale, zero) in zip((a, b), (self.first, self.second), strict=True)
        )
        real = _FUNCTIONS[self.op](left, right)
        rounded = np.rint(real / np.float32(self.out[0])).astype(np.float64)
        return np.asarray(np.clip(rounded + self.out[1], self.low, self.high), np.int64)

    def _at_once(self, a: Array, b: Array) -> Array:
        """Return a QLinear operator's result, not rounded, with zero point; sums are fused."""
        (first, zero_a), (second, zero_b), (out, zero) = (
            (np.float32(scale), float(point + (self.lowered or 0)))
            for scale, point in (self.first, self.second, self.out)
        )
        if self.is_product:
            products = ((a - int(zero_a)) * (b - int(zero_b))).astype(np.float32)
            return np.asarray(products * (first * second / out) + np.float32(zero))
        left, right = first / out, second / out
        moved = np.float32(zero) - _fused(left, zero_a, right * np.float32(zero_b))
        return _fused(left, a, _fused(right, b, moved))

    def real(self, a: Array, b: Array) -> Array:
        """Return the results in float64, not rounded, without the zero point."""
        left, right = ((x - zero) * scale for x, (scale, zero) in zip((a, b), (self.first, self.second), strict=True))
        result: Array = _FUNCTIONS[self.op](left, right) / self.out[0]
        return result

    def computed(self, a: Array, b: Array, constants: tuple[Array, ...], shifts: tuple[int, ...]) -> Array:
        """Return the results of the integer operator.

        Constants of many candidates broadcast against the pairs.
        """
        left, right = a - self.first[1], b - self.second[1]
        if self.is_product:
            total = multiply_by_quantized_multiplier(left * right, constants[0], shifts[0], "single")
        else:
            first, second = (
                multiply_by_quantized_multiplier(x << LEFT_SHIFT, constants[at], shifts[at], "double")
                for at, x in enumerate((left, right))
            )
            total = multiply_by_quantized_multiplier(
                _FUNCTIONS[self.op](first, second), constants[2], shifts[2], "double"
            )
        return np.asarray(np.clip(total + self.out[1], self.low, self.high))


@cache
def nearest_multipliers(pair: Pair) -> tuple[tuple[Fixed, ...], int] | None:
    """Return multipliers and shifts of operands and output, and the number of wrong pairs.

    For mul: of the output only. None if more than TOLERATED pairs differ.
    """
    if pair.is_product:
        nominal = [_fixed(pair.first[0] * pair.second[0] / pair.out[0])]
    else:
        twice = 2 * max(pair.first[0], pair.second[0])
        scales = (pair.first[0] / twice, pair.second[0] / twice, twice / ((1 << LEFT_SHIFT) * pair.out[0]))
        nominal = [_fixed(scale) for scale in scales]
    if not all(-31 <= shift <= 0 for _, shift in nominal):
        return None
    shifts = tuple(shift for _, shift in nominal)
    a, b = (part.reshape(-1) for part in np.meshgrid(_ALL, _ALL, indexing="ij"))
    real = pair.real(a, b)
    close = np.abs(real - np.floor(real) - 0.5) < _CLOSE
    near_a, near_b = a[close], b[close]
    expected = pair.expected(near_a, near_b)
    offsets = np.random.Generator(np.random.PCG64(_SEED)).integers(-_SPREAD, _SPREAD + 1, (_TRIED, len(nominal)))
    offsets = offsets[np.argsort(np.abs(offsets).sum(axis=1), kind="stable")]
    offsets[0] = 0
    tried = np.clip(np.array([m for m, _ in nominal]) + offsets, 1 << 30, (1 << 31) - 1)
    columns = tuple(tried[:, at : at + 1] for at in range(len(nominal)))
    sample = slice(None, None, -(-len(expected) // _SAMPLED) or 1)
    wrong_in_sample = pair.computed(near_a[sample], near_b[sample], columns, shifts) != expected[sample]
    if len(expected) > _SAMPLED and wrong_in_sample.sum(axis=1).min() > TOLERATED:
        return None
    wrong = (
        (pair.computed(near_a, near_b, columns, shifts) != expected).sum(axis=1) if len(expected) else np.zeros(1, int)
    )
    all_expected, fewest, best = pair.expected(a, b), TOLERATED + 1, None
    for index in np.argsort(wrong, kind="stable")[:_BEST]:
        constants = tuple(tried[index])
        count = int((pair.computed(a, b, constants, shifts) != all_expected).sum())
        if count < fewest:
            fewest, best = count, constants
        if not count:
            break
    if best is None:
        return None
    return tuple((int(m), shift) for m, shift in zip(best, shifts, strict=True)), fewest


@dataclass(frozen=True)
class Halves:
    """Factors of both operands; `halves_to_even` rounds their sum or product over 2^shift."""

    times: tuple[int, int]
    shift: int
    parity: Literal[0, 1]


@cache
def exact_halves(pair: Pair) -> Halves | None:
    """Return factors that give ONNX Runtime's result for all pairs, None if there are none."""
    first, second, out = (np.float32(scale) for scale, _ in (pair.first, pair.second, pair.out))
    quotients = [first * second / out] if pair.is_product else [first / out, second / out]
    bits = [_bits_behind_the_point(float(quotient)) for quotient in quotients]
    shift = max(bits)
    factors = [round(float(quotient) * 2**shift) for quotient in quotients] if shift <= _MOST_BITS else [1 << 31]
    most = 1 << (_MOST_BITS - 8 if pair.is_product else _MOST_BITS)
    if shift < 1 or max(factors) > most:
        return None
    halves = Halves((factors[0], (*factors, 1)[1]), shift, 1 if pair.lowered is not None and pair.out[1] % 2 else 0)
    a, b = (part.reshape(-1) for part in np.meshgrid(_ALL, _ALL, indexing="ij"))
    left, right = (a - pair.first[1]) * halves.times[0], (b - pair.second[1]) * halves.times[1]
    total = _FUNCTIONS[pair.op](left, right)
    computed = np.clip(halves_to_even(total, shift, halves.parity) + pair.out[1], pair.low, pair.high)
    return halves if np.array_equal(computed, pair.expected(a, b)) else None


def halves_to_even(x: Array, shift: int, parity: int) -> Array:
    """Return x / 2^shift to the nearest, halves to even after adding `parity`; 1 <= shift."""
    moved = x + (parity << shift)
    return np.asarray((moved + (1 << shift - 1) - 1 + (moved >> shift & 1) >> shift) - parity)


def _bits_behind_the_point(real: float) -> int:
    """Return the binary digits after the point of a float32 above 0."""
    return real.as_integer_ratio()[1].bit_length() - 1


def _fused(x: np.float32, y: Array | float, z: Array | np.float32) -> Array:
    """Return x * y + z, rounded once: products of float32 numbers are exact in float64."""
    return np.asarray(np.float64(x) * y + np.float64(z)).astype(np.float32)


def _fixed(real: float) -> Fixed:
    fraction, shift = frexp(real)
    return min(floor(fraction * 2**31 + 0.5), (1 << 31) - 1), shift
