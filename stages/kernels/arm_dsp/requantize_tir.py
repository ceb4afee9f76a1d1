"""Requantization as the arm_dsp kernels do it (rounding.py), in TIR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.tir.fixed_point import int64

if TYPE_CHECKING:
    from stages.graph.ops import Rounding

Expr = Any  # a TIR expression or a Python int


def half_word(word: Expr, number: int) -> Expr:
    """The lower (0) or upper (1) half of an int32 as a signed number."""
    return T.shift_right(word, 16) if number else T.shift_right(T.shift_left(word, 16), 16)


def byte(word: Expr, number: Expr) -> Expr:
    """A byte of an int32 as a signed number."""
    return T.bitwise_xor(T.bitwise_and(T.shift_right(word, number * 8), 255), 128) - 128


def requantize(acc: Expr, doubled: Expr, rounder: Expr, rounding: Rounding) -> Expr:
    """smmlar(smmlar(acc, doubled, acc), rounder, 0); the first without rounding for `single`."""
    scaled = int64(acc) * T.int64(1 << 32) + int64(acc) * int64(doubled)
    half = T.int64(1 << 31)
    t = T.shift_right(scaled + half if rounding == "double" else scaled, T.int64(32))
    return T.Cast("int32", T.shift_right(t * int64(rounder) + half, T.int64(32)))
