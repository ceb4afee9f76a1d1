"""Constants and cost of rows times weights, one row at a time (dot_rows.S, gathered_rows.c)."""

from __future__ import annotations

from math import gcd

from stages.backends.kernels.structure import Structure

LAYER = Structure("rvp_gathered_rows", ("rows", "bytes", "units", "steps", "clip", "weight_zero_point"))


def rows_cost(rows: int, depth: int, units: int, register: int, zero_point: int) -> float:
    """Return the instructions: 22 per row besides its products, 5 per unit that passes through scratch.

    Copying an unaligned row takes 11 per four units of bytes, 5 per further unit and 8 overhead.
    """
    unit = gcd(depth, register)
    count = depth // unit
    copied = _apart(rows, depth, register) * (count // 4 * 11 + count % 4 * 5 + 41)
    staged = _apart(rows, units, 4) * (5 + 5 * units)
    return rows * (row_cost(depth, units, register, zero_point) + 22) + staged + copied + 30


def _apart(rows: int, step: int, size: int) -> int:
    """Return how many rows at distance `step` bytes do not begin at a multiple of `size` bytes."""
    return rows - -(-rows * gcd(step, size) // size)


def row_cost(depth: int, units: int, register: int, zero_point: int) -> float:
    """Return the instructions of dot_rows.S for a row of `depth` elements and `units` units.

    The weights have `zero_point`. A group of n units takes 1 + 2 n per register of x, 3 more per eight registers, and
    19 + n. Four units are requantized in 23 (RV32: 27). A zero point of the weights adds 4 per register of x.
    """
    from stages.backends.riscv.kernels.rvp.packing import unit_groups

    steps, groups = -(-depth // register), unit_groups(units)
    products = sum(steps * (1 + 2 * n + 3 / 8) + 19 + n for n in groups)
    quads = -(-units // 4) * (23 if register == 8 else 27)
    return float(products + quads + (4 * steps if zero_point else 0) + 90)
