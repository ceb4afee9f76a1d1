"""Sigmoid and tanh of stages.ir.arithmetic.sigmoid16 as TIR statements on an int32 buffer."""

from __future__ import annotations

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.tir.block import loop, store
from stages.backends.kernels.tir.fixed_point import clamp, divide_by_pot, int64, select
from stages.ir.arithmetic.sigmoid16 import EXP_EIGHTH, EXP_POWERS, FIRST_GUESS, FIRST_SLOPE, HIGH, LOW, THIRD

Buffer = Any
CELLS = 5  # that a function needs


def sigmoid16(w: Buffer, x: int, name: str) -> None:
    """Set w[x] to its sigmoid in Q3.12.

    `name` distinguishes its loop. The other cells are overwritten.
    """
    _exp(w, x, 3)
    _reciprocal(w, name)
    store(w, clamp(w[1] * 2, LOW, HIGH), 1)
    store(w, select(w[x] == 0, T.int32(1 << 14), select(w[x] > 0, w[1], HIGH - w[1])), x)


def tanh16(w: Buffer, x: int, integer_bits: int, name: str) -> None:
    """Set w[x], which has `integer_bits` integer bits, to its tanh."""
    _exp(w, x, integer_bits + 1)
    _reciprocal(w, name)
    store(w, clamp((w[1] - (1 << 13)) * 4, LOW, HIGH), 1)
    store(w, select(w[x] == 0, T.int32(0), select(w[x] < 0, 0 - w[1], w[1])), x)


def rounded(x: Any, shift: int) -> Any:
    """Return x / 2^shift, halves away from zero, as int32."""
    return T.Cast("int32", divide_by_pot(int64(x), shift))


def _product(a: Any, b: Any) -> Any:
    return T.shift_right(a * b + (1 << 14), T.int32(15))


def _exp(w: Buffer, x: int, integer_bits: int) -> None:
    """Set w[1] to exp(-|w[x]|) in Q0.15."""
    quarter = 1 << (13 - integer_bits)
    store(w, T.min(w[x], 0 - w[x]), 0)
    store(w, T.bitwise_and(w[0], T.int32(quarter - 1)) - quarter, 2)
    store(w, T.shift_right(w[2] - w[0], T.int32(13 - integer_bits)), 3)
    store(w, w[2] * (1 << integer_bits) + (1 << 12), 1)
    store(w, _product(w[1], w[1]), 2)
    store(w, _product(rounded(_product(w[2], w[2]), 2) + _product(w[2], w[1]), T.int32(THIRD)) + w[2], 2)
    store(w, T.min(EXP_EIGHTH + _product(w[1] + rounded(w[2], 1), T.int32(EXP_EIGHTH)), HIGH), 1)
    for bit, power in zip(range(integer_bits + 2), EXP_POWERS, strict=False):
        store(w, select(T.bitwise_and(w[3], T.int32(1 << bit)) != 0, _product(w[1], T.int32(power)), w[1]), 1)
    if integer_bits > 5:
        store(w, select(w[0] < -(32 << (15 - integer_bits)), T.int32(0), w[1]), 1)
    store(w, select(w[0] == 0, T.int32(HIGH), w[1]), 1)


def _reciprocal(w: Buffer, name: str) -> None:
    """Set w[1] to 2 / (1 + w[1]) in Q2.13."""
    store(w, T.shift_right(w[1] + (1 << 15), T.int32(1)), 2)
    store(w, FIRST_GUESS + _product(w[2], T.int32(FIRST_SLOPE)), 1)
    with loop((name, 3)):
        store(w, w[1] + clamp(_product(w[1], (1 << 13) - _product(w[2], w[1])) * 4, LOW, HIGH), 1)
