"""Elementwise instructions on fields of 8, 16 and 32 bits."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.rvp.fields import Machine, Operation, Semantics, Sources, join, part, rounded, signed


def elementwise(bits: int, is_signed: bool, operation: Operation) -> Semantics:
    """Rd[x] = operation(Rs1[x], Rs2[x]) in every field of `bits` bits."""

    def semantics(m: Machine, s: Sources) -> int:
        a = [part(s.rs1, bits, x, is_signed=is_signed) for x in range(m.xlen // bits)]
        b = [part(s.rs2, bits, x, is_signed=is_signed) for x in range(m.xlen // bits)]
        return join([operation(m, x, y) for x, y in zip(a, b, strict=True)], bits)

    return semantics


def shifted(bits: int, is_signed: bool, amount: Callable[[Sources], int], operation: Operation) -> Semantics:
    """Rd[x] = operation(Rs1[x], amount), one amount for all fields."""

    def semantics(m: Machine, s: Sources) -> int:
        fields = [part(s.rs1, bits, x, is_signed=is_signed) for x in range(m.xlen // bits)]
        return join([operation(m, x, amount(s)) for x in fields], bits)

    return semantics


def leading(value: int, bits: int, bit: int) -> int:
    """How many of the `bits` low bits, from the top, equal `bit`."""
    digits = f"{value & ((1 << bits) - 1):0{bits}b}"
    return len(digits) - len(digits.lstrip(str(bit)))


def left_or_right(bits: int, rounding: bool) -> Operation:
    """KSLRA: a positive amount shifts left with saturation, a negative one right, the most negative by bits - 1."""

    def operation(m: Machine, x: int, amount: int) -> int:
        if amount >= 0:
            return m.q(x << amount, bits)
        amount = min(-amount, bits - 1)
        return rounded(x, amount) if rounding else x >> amount

    return operation


def simd(bits: int) -> dict[str, Semantics]:
    """Addition, comparison, minimum, clip and counts."""
    arithmetic: dict[str, tuple[bool, Operation]] = {
        "add": (False, lambda m, x, y: x + y),
        "sub": (False, lambda m, x, y: x - y),
        "radd": (True, lambda m, x, y: (x + y) >> 1),
        "uradd": (False, lambda m, x, y: (x + y) >> 1),
        "rsub": (True, lambda m, x, y: (x - y) >> 1),
        "ursub": (False, lambda m, x, y: (x - y) >> 1),
        "kadd": (True, lambda m, x, y: m.q(x + y, bits)),
        "ukadd": (False, lambda m, x, y: m.u(x + y, bits)),
        "ksub": (True, lambda m, x, y: m.q(x - y, bits)),
        "uksub": (False, lambda m, x, y: m.u(x - y, bits)),
        "smin": (True, lambda m, x, y: min(x, y)),
        "umin": (False, lambda m, x, y: min(x, y)),
        "smax": (True, lambda m, x, y: max(x, y)),
        "umax": (False, lambda m, x, y: max(x, y)),
        "cmpeq": (False, lambda m, x, y: -(x == y)),
        "scmplt": (True, lambda m, x, y: -(x < y)),
        "ucmplt": (False, lambda m, x, y: -(x < y)),
        "scmple": (True, lambda m, x, y: -(x <= y)),
        "ucmple": (False, lambda m, x, y: -(x <= y)),
        "kabs": (True, lambda m, x, y: m.q(abs(x), bits)),
        "clz": (False, lambda m, x, y: leading(x, bits, 0)),
        "clrs": (True, lambda m, x, y: leading(x, bits, int(x < 0)) - 1),
    }
    clips: dict[str, Operation] = {
        "sclip": lambda m, x, imm: m.saturate(x, -(1 << imm), (1 << imm) - 1),
        "uclip": lambda m, x, imm: m.saturate(x, 0, (1 << imm) - 1),
    }
    table = {f"{name}{bits}": elementwise(bits, kind, operation) for name, (kind, operation) in arithmetic.items()}
    return table | {f"{name}{bits}": shifted(bits, True, lambda s: s.imm, op) for name, op in clips.items()}


def shifts(bits: int) -> dict[str, Semantics]:
    """Shifts by the low bits of Rs2, by an immediate, and by a signed amount."""
    operations: dict[str, tuple[bool, Operation]] = {
        "sll": (False, lambda m, x, sa: x << sa),
        "srl": (False, lambda m, x, sa: x >> sa),
        "srl.u": (False, lambda m, x, sa: rounded(x, sa)),
        "sra": (True, lambda m, x, sa: x >> sa),
        "sra.u": (True, lambda m, x, sa: rounded(x, sa)),
        "ksll": (True, lambda m, x, sa: m.q(x << sa, bits)),
    }
    table: dict[str, Semantics] = {}
    for name, (kind, operation) in operations.items():
        stem, dot, suffix = name.partition(".")
        table[f"{stem}{bits}{dot}{suffix}"] = shifted(bits, kind, lambda s: s.rs2 % bits, operation)
        table[f"{stem}i{bits}{dot}{suffix}"] = shifted(bits, kind, lambda s: s.imm, operation)
    for suffix in ("", ".u"):
        table[f"kslra{bits}{suffix}"] = shifted(
            bits, True, lambda s: signed(s.rs2, bits.bit_length()), left_or_right(bits, bool(suffix))
        )
    return table
