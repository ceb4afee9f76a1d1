"""Fixed-point multiplications whose halves go another way: what cases are chosen to tell from the right one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stages.arithmetic.fixed_point import Array, saturate


@dataclass(frozen=True)
class Change:
    """Other roundings of x * multiplier / 2^31 and of x / 2^shift; `multiply` is the only one of a single rounding."""

    name: str
    multiply: Callable[[Array, int], Array] | None = None
    divide: Callable[[Array, int], Array] | None = None


def half_up(x: Array, bits: int) -> Array:
    return (x + ((np.int64(1) << bits) >> 1)) >> bits


def half_down(x: Array, bits: int) -> Array:
    return -half_up(-x, bits)


def half_away(x: Array, bits: int) -> Array:
    return np.where(x < 0, half_down(x, bits), half_up(x, bits))


def half_to_zero(x: Array, bits: int) -> Array:
    return np.where(x < 0, half_up(x, bits), half_down(x, bits))


def floor(x: Array, bits: int) -> Array:
    return x >> bits


_ALL = {"halves up": half_up, "halves down": half_down, "halves away": half_away, "halves to zero": half_to_zero}


def changes(rounding: str) -> list[Change]:
    """All ways to round the halves of a step wrongly, and not to round."""
    others = {**_ALL, "no rounding": floor}
    multiplied = [Change(f"product {name}", multiply=way) for name, way in others.items() if name != "halves up"]
    divided = [Change(f"shift {name}", divide=way) for name, way in others.items() if name != "halves away"]
    return multiplied + divided if rounding == "double" else multiplied


def changed_multiplication(x: Array, multiplier: int, shift: int, rounding: str, change: Change | None) -> Array:
    """M of stages.operators.layer for int64 arrays of int32 values, with one of its roundings changed."""
    multiply = (change.multiply if change else None) or half_up
    if rounding == "single":
        return multiply(x * multiplier, 31 - shift)
    divide = (change.divide if change else None) or half_away
    product = saturate(multiply((x << max(shift, 0)) * multiplier, 31))
    return divide(product, -shift) if shift < 0 else product
