"""Requantization of the MVE kernels in TIR (rounding.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stages.backends.kernels.tir.fixed_point import high_mul, int64
from stages.backends.kernels.tir.fixed_point import requantize as by_shift
from stages.support.lazy import T

if TYPE_CHECKING:
    from stages.backends.cortex_m.kernels.mve.rounding import Mode

Expr = Any  # a TIR expression or a Python int


def requantize(acc: Expr, multiplier: Expr, rounder: Expr, mode: Mode) -> Expr:
    """Return vqrdmulh(vqrdmulh(acc, multiplier), rounder); int32.

    In mode shifted `rounder` is the shift.
    """
    if mode == "shifted":
        return by_shift(acc, multiplier, rounder, "double")
    single = T.shift_right(int64(acc) * int64(multiplier), T.int64(31))
    t = single if mode == "single" else high_mul(acc, multiplier)
    if mode == "lowered":
        t = t + T.shift_right(t, T.int64(63))
    return T.Cast("int32", high_mul(t, rounder))
