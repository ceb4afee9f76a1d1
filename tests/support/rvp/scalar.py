"""Arithmetic on one number: the low halfword or word, the whole register, or 64 bits."""

from __future__ import annotations

from tests.support.rvp.fields import Operation, Semantics, rounded, signed
from tests.support.rvp.simd import left_or_right


def low(bits: int, is_signed: bool, operation: Operation) -> Semantics:
    """Rd = SE(operation(low field of Rs1, low field of Rs2)): sign-extended from `bits` bits even where unsigned."""
    mask = (1 << bits) - 1
    return lambda m, s: signed(
        operation(
            m, signed(s.rs1, bits) if is_signed else s.rs1 & mask, signed(s.rs2, bits) if is_signed else s.rs2 & mask
        ),
        bits,
    )


def additions(suffix: str, bits: int) -> dict[str, Semantics]:
    """KADDH, KADDW and their kin."""
    return {
        f"kadd{suffix}": low(bits, True, lambda m, x, y: m.q(x + y, bits)),
        f"ksub{suffix}": low(bits, True, lambda m, x, y: m.q(x - y, bits)),
        f"ukadd{suffix}": low(bits, False, lambda m, x, y: m.u(x + y, bits)),
        f"uksub{suffix}": low(bits, False, lambda m, x, y: m.u(x - y, bits)),
        f"radd{suffix}": low(bits, True, lambda m, x, y: (x + y) >> 1),
        f"rsub{suffix}": low(bits, True, lambda m, x, y: (x - y) >> 1),
        f"uradd{suffix}": low(bits, False, lambda m, x, y: (x + y) >> 1),
        f"ursub{suffix}": low(bits, False, lambda m, x, y: (x - y) >> 1),
    }


def scalars() -> dict[str, Semantics]:
    """All of this module by name."""
    table = additions("h", 16) | additions("w", 32)
    table |= {
        "add64": lambda m, s: s.rs1 + s.rs2,
        "sub64": lambda m, s: s.rs1 - s.rs2,
        **additions("64", 64),
        "kabsw": lambda m, s: signed(m.q(abs(signed(s.rs1, 32)), 32), 32),
        "ksllw": lambda m, s: m.q(signed(s.rs1, 32) << (s.rs2 & 31), 32),
        "kslliw": lambda m, s: m.q(signed(s.rs1, 32) << s.imm, 32),
        "kslraw": lambda m, s: left_or_right(32, False)(m, signed(s.rs1, 32), signed(s.rs2, 6)),
        "kslraw.u": lambda m, s: left_or_right(32, True)(m, signed(s.rs1, 32), signed(s.rs2, 6)),
        "sraiw.u": lambda m, s: rounded(signed(s.rs1, 32), s.imm),
        "sra.u": lambda m, s: rounded(signed(s.rs1, m.xlen), s.rs2 % m.xlen),
        "srai.u": lambda m, s: rounded(signed(s.rs1, m.xlen), s.imm),
        "ave": lambda m, s: (signed(s.rs1, m.xlen) + signed(s.rs2, m.xlen) + 1) >> 1,
        "max": lambda m, s: max(signed(s.rs1, m.xlen), signed(s.rs2, m.xlen)),
        "min": lambda m, s: min(signed(s.rs1, m.xlen), signed(s.rs2, m.xlen)),
    }
    return table
