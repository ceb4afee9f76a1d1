"""Rows times weights, one row at a time (dot_rows.S): what gathered_rows.c must know of them, and what that costs."""

from __future__ import annotations

from math import gcd

from stages.backends.kernels.structure import Structure

LAYER = Structure("rvp_gathered_rows", ("rows", "bytes", "units", "steps", "clip", "weight_zero_point"))


def rows_cost(rows: int, depth: int, units: int, register: int, zero_point: int) -> float:
    """Beside the rows' products 22 for each, and 5 for a unit that goes through scratch.

    A row that begins at no register is copied, in 11 for four units of bytes, 5 for each other and 8 around.
    """
    unit = gcd(depth, register)
    count = depth // unit
    copied = _apart(rows, depth, register) * (count // 4 * 11 + count % 4 * 5 + 41)
    staged = _apart(rows, units, 4) * (5 + 5 * units)
    return rows * (row_cost(depth, units, register, zero_point) + 22) + staged + copied + 30


def _apart(rows: int, step: int, size: int) -> int:
    """Rows that do not begin at multiples of `size` bytes, where it is `step` bytes from one to the next."""
    return rows - -(-rows * gcd(step, size) // size)


def row_cost(depth: int, units: int, register: int, zero_point: int) -> float:
    """Instructions of dot_rows.S for a row of `depth` elements and `units` units; weights have `zero_point`.

    Of a group of n units: 1 + 2 n for a register of x, 3 more for eight of them, 19 + n around. Four units are
    requantized in 23 (RV32: 27); 4 for a register of x where the weights have a zero point.
    """
    from stages.backends.riscv.kernels.rvp.packing import unit_groups

    steps, groups = -(-depth // register), unit_groups(units)
    products = sum(steps * (1 + 2 * n + 3 / 8) + 19 + n for n in groups)
    quads = -(-units // 4) * (23 if register == 8 else 27)
    return float(products + quads + (4 * steps if zero_point else 0) + 90)
