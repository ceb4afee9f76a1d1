"""Lines of RISC-V disassembly (`-M no-aliases`) as instructions. The RISC-V Instruction Set Manual, volume I."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stages.backends.timing.instruction import Instruction

if TYPE_CHECKING:
    from stages.backends.timing.disassembly import Line

_REGISTER = re.compile(
    r"\b(?:zero|ra|sp|gp|tp|a[0-7]|t[0-6]|s1[01]|s[0-9]|f[ats]1[01]|f[ats][0-9]|v[12]?[0-9]|v3[01])\b"
)
_ADDRESS = re.compile(r"\(([a-z0-9]+)\)")
_STORE = re.compile(r"^(?:s[bhwd]|f?s[wd]sp|f?s[wd]|fs[hwdq]|vs(?:s?(?:seg\d)?e\d+|[uo]x(?:seg\d)?ei\d+|m|\dr)\.v)$")
_ACCUMULATES = re.compile(r"^v(?:f?w?n?m(?:acc|add|sac|sub)|qdot|dot4a)")
_BRANCH = re.compile(r"^b(?:eq|ne|lt|ge|ltu|geu|eqz|nez)$")
_TARGET = re.compile(r"(?:^|,)([0-9a-f]+)$")
_SHORT = 2  # bytes
_OVERWRITES = frozenset(("mv", "li", "lui", "auipc", "addi4spn", "lw", "lwsp", "jal"))
_NO_RESULT = frozenset(("j", "jr", "nop", "ebreak", "ecall", "fence", "fence.i", "mret"))


def objdump_options(_isa: str) -> tuple[str, ...]:
    """Return options of objdump: print no short names for special uses of an instruction, such as `mv` for `addi`."""
    return ("-M", "no-aliases")


def decode(lines: Iterable[Line]) -> Iterator[Instruction]:
    """Yield the instructions. Mnemonics of compressed ones are without `c.`."""
    for line in lines:
        mnemonic = line.mnemonic.removeprefix("c.")
        places = frozenset(_ADDRESS.findall(line.operands))
        given = _REGISTER.findall(_ADDRESS.sub("", line.operands))
        reads, writes = _read_and_written(mnemonic, given, compressed=line.mnemonic.startswith("c."))
        target = _TARGET.search(line.operands) if _BRANCH.match(mnemonic) or mnemonic in ("j", "jal") else None
        to = int(target[1], 16) if target else -1
        facts = ({"backward"} if 0 <= to <= line.address else set()) | ({"short"} if line.size == _SHORT else set())
        yield Instruction(
            line.address,
            line.size,
            f"{line.mnemonic} {line.operands}".strip(),
            mnemonic,
            (reads | places) - {"zero"},
            writes - {"zero"},
            places if not mnemonic.startswith("jal") else frozenset(),
            facts=frozenset(facts),
            accumulators=reads & writes if _ACCUMULATES.match(mnemonic) else frozenset(),
            data=reads - places if _STORE.match(mnemonic) else frozenset(),
            target=to,
        )


def _read_and_written(mnemonic: str, given: list[str], *, compressed: bool) -> tuple[frozenset[str], frozenset[str]]:
    if _STORE.match(mnemonic) or _BRANCH.match(mnemonic) or mnemonic in _NO_RESULT or not given:
        return frozenset(given), frozenset()
    if compressed and mnemonic == "jalr":
        return frozenset(given), frozenset({"ra"})
    reads_result = _ACCUMULATES.match(mnemonic) or (compressed and mnemonic not in _OVERWRITES)
    read = given if reads_result else given[1:]
    return frozenset(read), frozenset(given[:1])
