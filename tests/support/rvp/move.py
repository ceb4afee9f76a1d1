"""Packing, unpacking and swapping of fields."""

from __future__ import annotations

from tests.support.rvp.fields import Machine, Semantics, Sources, join, part


def pack(bits: int, top: int, bottom: int) -> Semantics:
    """Each field pair of Rd is CONCAT(field `top` of Rs1's pair, field `bottom` of Rs2's pair)."""

    def semantics(m: Machine, s: Sources) -> int:
        fields: list[int] = []
        for x in range(0, m.xlen // bits, 2):
            fields.append(part(s.rs2, bits, x + bottom, is_signed=False))
            fields.append(part(s.rs1, bits, x + top, is_signed=False))
        return join(fields, bits)

    return semantics


def unpack(top: int, bottom: int, *, is_signed: bool) -> Semantics:
    """Rd.W[m].H[1] = byte `top` and Rd.W[m].H[0] = byte `bottom` of Rs1.W[m], extended."""

    def semantics(m: Machine, s: Sources) -> int:
        bytes_of = [4 * x + y for x in range(m.xlen // 32) for y in (bottom, top)]
        return join([part(s.rs1, 8, index, is_signed=is_signed) for index in bytes_of], 16)

    return semantics


def insert_byte(m: Machine, s: Sources) -> int:
    """Rd.B[imm] = Rs1.B[0]."""
    values = [part(s.rd, 8, x, is_signed=False) for x in range(m.xlen // 8)]
    values[s.imm] = s.rs1 & 0xFF
    return join(values, 8)


def swap_bytes(m: Machine, s: Sources) -> int:
    """Rd.H[x] = CONCAT(Rs1.H[x].B[0], Rs1.H[x].B[1])."""
    return join([part(s.rs1, 8, x ^ 1, is_signed=False) for x in range(m.xlen // 8)], 8)


def mix(m: Machine, s: Sources) -> int:
    """Rd = (Rs1 & Rs2) | (Rs3 & ~Rs2); Rs3 is the register that Rd was."""
    return s.rs1 & s.rs2 | s.rd & ~s.rs2


def pack_registers(index: int) -> Semantics:
    """Rd = CONCAT(half `index` of Rs2, half `index` of Rs1), halves of XLEN / 2 bits."""

    def semantics(m: Machine, s: Sources) -> int:
        bits = m.xlen // 2
        return join([part(register, bits, index, is_signed=False) for register in (s.rs1, s.rs2)], bits)

    return semantics


def moves() -> dict[str, Semantics]:
    """All of this module by name."""
    table: dict[str, Semantics] = {
        "insb": insert_byte,
        "rev8.h": swap_bytes,
        "cmix": mix,
        "pack": pack_registers(0),
        "packu": pack_registers(1),
    }
    position = {"b": 0, "t": 1}
    for name in ("bb", "bt", "tb", "tt"):
        table[f"pk{name}16"] = pack(16, position[name[0]], position[name[1]])
        table[f"pk{name}32"] = pack(32, position[name[0]], position[name[1]])
    for top, bottom in ((1, 0), (2, 0), (3, 0), (3, 1), (3, 2)):
        table[f"sunpkd8{top}{bottom}"] = unpack(top, bottom, is_signed=True)
        table[f"zunpkd8{top}{bottom}"] = unpack(top, bottom, is_signed=False)
    return table
