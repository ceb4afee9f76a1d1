"""The machine state, operands and register fields that the semantics are written with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Machine:
    """Register width and the sticky overflow flag vxsat.OV."""

    xlen: int
    ov: bool = False

    def saturate(self, value: int, low: int, high: int) -> int:
        """`value` clipped to [low, high]; sets OV when that changes it."""
        clipped = max(low, min(high, value))
        self.ov |= clipped != value
        return clipped

    def q(self, value: int, bits: int) -> int:
        """Saturation to a signed number of `bits` bits."""
        return self.saturate(value, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)

    def u(self, value: int, bits: int) -> int:
        """Saturation to an unsigned number of `bits` bits."""
        return self.saturate(value, 0, (1 << bits) - 1)


@dataclass(frozen=True)
class Sources:
    """Operands as unsigned integers: 64 bits for register pairs, XLEN bits otherwise; `imm` is the immediate."""

    rd: int
    rs1: int
    rs2: int
    imm: int


Semantics = Callable[[Machine, Sources], int]
Operation = Callable[[Machine, int, int], int]


def signed(value: int, bits: int) -> int:
    """The low `bits` bits as a two's-complement number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def part(register: int, bits: int, index: int, *, is_signed: bool) -> int:
    """Field `index` of `bits` bits: r.B[index], r.H[index] or r.W[index] of the specification."""
    value = register >> (bits * index) & ((1 << bits) - 1)
    return signed(value, bits) if is_signed else value


def half(register: int, index: int) -> int:
    """r.H[index], signed."""
    return part(register, 16, index, is_signed=True)


def word(register: int, index: int, *, is_signed: bool = True) -> int:
    """r.W[index]."""
    return part(register, 32, index, is_signed=is_signed)


def join(values: list[int], bits: int) -> int:
    """A register with values[0] in its lowest field."""
    return sum((value & ((1 << bits) - 1)) << (bits * index) for index, value in enumerate(values))


def rounded(value: int, amount: int) -> int:
    """Shift right after adding the most significant bit that is discarded."""
    return value if amount == 0 else ((value >> (amount - 1)) + 1) >> 1
