"""Rows times weights, one row at a time (dot_rows.S): where rows lie, and what gathered_rows.c must know of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from stages.kernels.structure import Structure

if TYPE_CHECKING:
    import numpy as np

LAYER = Structure(
    "rvp_gathered_rows",
    (
        *("start", "rows", "row_step", "taps", "tap_step", "bytes", "products", "step"),
        *("units", "steps", "weight_step", "param_step", "clip", "weight_zero_point"),
    ),
)
_UNROLLED = 4  # units of the longest runs that gathered_rows.c copies without a loop


@dataclass(frozen=True)
class Rows:
    """The products of a row and weights that a layer is.

    merged              groups in a product: weights are those of a group on the diagonal, and count nothing beside it
    is_shared           whether all products have the same weights
    rows, taps          runs of a row's bytes in the image: `rows` times `taps` of `bytes` bytes, one where they touch
    row_step, tap_step  bytes from one to the next
    step                bytes from the runs of a product to those of the next
    """

    products: int
    merged: int
    rows: int
    row_step: int
    taps: int
    tap_step: int
    bytes: int
    step: int
    units: int
    is_shared: bool = False

    @property
    def depth(self) -> int:
        return self.rows * self.taps * self.bytes

    def steps(self, register: int) -> int:
        return -(-self.depth // register)

    def weight_bytes(self, register: int) -> int:
        """Of a product."""
        return self.units * self.steps(register) * register

    def layer(self, register: int, start: int, clip: int, zero_point: int) -> np.ndarray:
        """The structure of gathered_rows.h; the first run is `start` bytes behind the image's first."""
        own = {field: getattr(self, field) for field in LAYER.fields if hasattr(self, field)}
        steps, weights = self.steps(register), 0 if self.is_shared else self.weight_bytes(register)
        params = 0 if self.is_shared else -(-self.units // 4) * 12
        own |= {"start": start, "steps": steps, "weight_step": weights, "param_step": params}
        return LAYER.of({**own, "clip": clip, "weight_zero_point": zero_point})

    def cost(self, register: int, zero_point: int) -> float:
        """Beside the rows' products 22 for each, and 5 for a unit that goes through scratch.

        A run of up to four units is copied in 2 for each and 3 around, a longer one in 11 for four, 5 for each other
        and 8 around.
        """
        row = row_cost(self.depth, self.units, register, zero_point) + 22
        staged = self._apart(self.units, 4) * (5 + 5 * self.units)
        gathered = self.products if self.rows * self.taps > 1 else self._apart(self.step, register)
        places = self.bytes | self.row_step | self.step
        units = self.bytes // next(unit for unit in (register, 4, 2, 1) if not places % unit)
        run = 2 * units + 3 if units <= _UNROLLED else units // 4 * 11 + units % 4 * 5 + 8
        return self.products * row + staged + gathered * (self.rows * (self.taps * run + 3) + 30) + 30

    def _apart(self, step: int, size: int) -> int:
        """Products that do not begin at multiples of `size` bytes, where it is `step` bytes from one to the next."""
        return self.products - -(-self.products * gcd(step, size) // size)


def row_cost(depth: int, units: int, register: int, zero_point: int) -> float:
    """Instructions of dot_rows.S for a row of `depth` elements and `units` units; weights have `zero_point`.

    Of a group of n units: 1 + 2 n for a register of x, 3 more for eight of them, 19 + n around. Four units are
    requantized in 23 (RV32: 27); 4 for a register of x where the weights have a zero point.
    """
    from stages.kernels.rvp.packing import unit_groups

    steps, groups = -(-depth // register), unit_groups(units)
    products = sum(steps * (1 + 2 * n + 3 / 8) + 19 + n for n in groups)
    quads = -(-units // 4) * (23 if register == 8 else 27)
    return float(products + quads + (4 * steps if zero_point else 0) + 90)
