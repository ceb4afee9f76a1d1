"""Constants of layers that sum products, such that sums lie on the halves of each rounding.

In a run whose input is the zero point everywhere the accumulator of a channel is its bias, so a bias puts it where one
likes. With M of `stages.ir.layers.rounding`, a real multiplier m * 2^(shift - 31) and s = -shift:

  double  T = (acc * m + 2^30) >> 31, then T / 2^s, halves away from zero
          `divide`    T = +-(2 k + 1) 2^(s - 1), for any m; and T one more or less
          `multiply`  acc * m is an odd multiple of 2^30, and T a place where one less gives another result
  single  (acc * m + 2^(30 + s)) >> (31 + s)
          `once`      acc * m is an odd multiple of 2^(30 + s); and acc one more or less
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np

from stages.ir.arithmetic.fixed_point import saturating_rounding_doubling_high_mul as high_mul
from tests.conformance.draw import Draw

HALVES = (0, 1, 2, 3, 7, 20, 61)  # k of the halves k + 1/2 that results lie on
_LIMIT = (1 << 31) - (1 << 20)  # of a bias: the data adds to it


@dataclass(frozen=True)
class Tie:
    """An accumulator, the multiplier and the step of the rounding that it lies on a half of."""

    step: str
    multiplier: int
    accumulator: int


def ties(rounding: str, shift: int, draw: Draw) -> list[Tie]:
    """Accumulators on halves and beside them, of both signs."""
    made = _double(shift, draw) if rounding == "double" else _single(shift, draw)
    return [tie for tie in made if abs(tie.accumulator) << max(shift, 0) < _LIMIT]


def _double(shift: int, draw: Draw) -> Iterator[Tie]:
    right = max(-shift, 0)
    for k in HALVES:
        for sign in (1, -1):
            half = sign * (2 * k + 1) << (right - 1) if right else sign * k
            for beside in (0, 1, -1) if right else (0,):
                m = draw.choose(1 << 30, draw.integer(1 << 30, (1 << 31) - 1))
                yield Tie("divide", m, _accumulator(half + beside, m, max(shift, 0)))
            wanted = half + (sign < 0 and right > 0)  # one less gives another result
            for factor, bits in ((1, 0), (3, 1), (5, 2), (7, 2), (9, 3)):
                # acc * factor * 2^(30 - bits) = (2 wanted - 1) * 2^30
                scaled = (2 * wanted - 1) << bits
                if scaled % factor == 0 and scaled // factor % (1 << max(shift, 0)) == 0:
                    yield Tie("multiply", factor << (30 - bits), scaled // factor >> max(shift, 0))


def _single(shift: int, draw: Draw) -> Iterator[Tie]:
    for k in HALVES:
        for sign in (1, -1):
            for factor, bits in ((1, 0), (3, 1), (5, 2), (7, 2), (9, 3)):
                half = sign * (2 * k + 1) << bits
                exponent = -shift  # acc * factor * 2^(30 - bits) = +-(2 k + 1) * 2^(30 - shift)
                scaled = half << exponent if exponent >= 0 else half >> -exponent
                if half % factor or (exponent < 0 and half % (1 << -exponent)):
                    continue
                for beside in (0, 1, -1):
                    yield Tie("once", factor << (30 - bits), scaled // factor + beside)
            m = draw.integer(1 << 30, (1 << 31) - 1)
            yield Tie("once", m, ((sign * (2 * k + 1)) << (30 - shift)) // m + draw.integer(0, 1))


def _accumulator(wanted: int, multiplier: int, left: int) -> int:
    """An accumulator whose doubling product is `wanted`, or as near as one comes."""
    near = (wanted << 31) // multiplier >> left
    return min(range(near - 1, near + 3), key=lambda acc: abs(int(high_mul(acc << left, multiplier)) - wanted))


def tie_constants(rounding: str, shift: int, units: int, draw: Draw, sign: int = 0) -> Iterator[dict[str, np.ndarray]]:
    """Bias, multiplier and shift of layers of `units` channels that between them have every tie.

    `sign`: of all accumulators, 0 for both. Every second layer has one multiplier for all its channels.
    """
    chosen = [tie for tie in ties(rounding, shift, draw) if not sign or tie.accumulator * sign >= 0]
    groups = [[tie for tie in chosen if tie.multiplier == 1 << 30], chosen]
    for group in groups:
        for start in range(0, len(group), units):
            part = list(islice(cycle(group[start:] + group[:start]), units))
            yield {
                "bias": np.array([tie.accumulator for tie in part], np.int32),
                "multiplier": np.array([tie.multiplier for tie in part], np.int32),
                "shift": np.full(units, shift, np.int32),
            }


def mixed_shifts(units: int, draw: Draw, rounding: str) -> dict[str, np.ndarray]:
    """Channels that training left dead, whose shifts are the lowest, beside usual ones and such with ties."""
    shifts = draw.rng.choice(np.array([-1, -2, -5, -8, -11, -12, -13, -15, -16, -20, -24, -31]), units)
    bias, multiplier = np.zeros(units, np.int32), np.zeros(units, np.int32)
    for channel, shift in enumerate(shifts):
        tie = draw.choose(*(ties(rounding, int(shift), draw) or [Tie("none", 1 << 30, draw.integer(-9000, 9000))]))
        bias[channel], multiplier[channel] = tie.accumulator, tie.multiplier
    if units > 3:
        multiplier[draw.integer(0, units - 1)] = 0
    return {"bias": bias, "multiplier": multiplier, "shift": shifts.astype(np.int32)}


def zero_point_runs(draw: Draw, shape: tuple[int, ...], zero_point: int, fields: dict[str, Any] | None = None) -> Any:
    """Inputs that are the zero point everywhere, and such that are one above or below it here and there."""
    low, high = np.iinfo(draw.dtype).min, np.iinfo(draw.dtype).max
    still = np.full(shape, zero_point, draw.dtype)
    near = np.clip(zero_point + draw.rng.integers(-1, 2, shape), low, high).astype(draw.dtype)
    return still, near
