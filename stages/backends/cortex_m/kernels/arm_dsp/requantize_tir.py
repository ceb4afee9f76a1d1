"""Requantization of the arm_dsp kernels in TIR (rounding.py)."""

from collections.abc import Sequence
from typing import Any

from stages.backends.kernels.tir.fixed_point import int64
from stages.ir.layers import ROUNDINGS, Rounding
from stages.support.lazy import T

Expr = Any  # a TIR expression or a Python int


def requantize(acc: Expr, scale: Sequence[Expr], rounding: Rounding) -> Expr:
    """Return a channel's result without its zero point.

    `scale` has two words, or four for the long rounding.

    short  smmlar(smmlar(acc, doubled, acc), rounder, 0); the first without rounding for `single`
    long   acc and the first result are shifted to the left, the latter is lowered; smmlsr(..., rounder, 0)
    """
    half = T.int64(1 << 31)
    if len(scale) == 2:
        doubled, rounder = scale
        t = _high_multiply(acc, doubled, half if ROUNDINGS[rounding].is_double else None)
        return T.Cast("int32", T.shift_right(t * int64(rounder) + half, T.int64(32)))
    left, doubled, post, rounder = scale
    t = T.Cast("int32", _high_multiply(T.shift_left(acc, left), doubled, half))
    t = T.shift_left(t, post)
    lowered = t + T.shift_right(t, 31)
    return T.Cast("int32", T.shift_right(half - int64(lowered) * int64(rounder), T.int64(32)))


def _high_multiply(acc: Expr, doubled: Expr, half: Expr | None) -> Expr:
    """Return smmlar(acc, doubled, acc) as int64, or smmla without `half`."""
    scaled = int64(acc) * T.int64(1 << 32) + int64(acc) * int64(doubled)
    return T.shift_right(scaled if half is None else scaled + half, T.int64(32))
