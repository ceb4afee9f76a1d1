"""Lines of Thumb disassembly as instructions. Armv7-M Architecture Reference Manual, A7.7; IT blocks: A7.3."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stages.backends.timing.instruction import Instruction

if TYPE_CHECKING:
    from stages.backends.timing.disassembly import Line

_REGISTER = re.compile(r"\b(?:r1[0-5]|r[0-9]|sb|sl|fp|ip|sp|lr|pc|[sdq][0-9]{1,2})\b")
_CALLED = {"sb": "r9", "sl": "r10", "fp": "r11", "ip": "r12"}
_CORE = frozenset(("sb", "sl", "sp"))
_IT = re.compile(r"^it([te]{0,3})$")
_LIST = re.compile(r"\{([^}]*)\}")
_ADDRESS = re.compile(r"\[([^\]]*)\](!|, .+)?")
_SPAN = re.compile(r"\b([sd])(\d+)-[sd](\d+)\b")
_CONDITION = 2  # letters
_NOTHING_WRITTEN = frozenset(("cmp", "cmn", "tst", "teq", "vcmp", "vcmpe", "vmrs", "cbz", "cbnz", "tbb", "tbh"))
_BRANCH = re.compile(r"^b(?:l|x|lx|eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?$")
_MOVES = frozenset(("mov", "movs", "movw", "mvn", "mvns", "adr", "vmov"))
_TWO_RESULTS = ("umull", "smull", "umlal", "smlal", "umaal", "smlsld", "ldrd")
_RESULT_IS_READ = (
    *("mla", "mls", "smlal", "umlal", "umaal", "movt", "bfi"),
    *("vmla", "vmls", "vfma", "vfms", "vnml", "vfnm"),
)


def decode(lines: Iterable[Line]) -> Iterator[Instruction]:
    """Yield the instructions. In an IT block the mnemonic is without the condition."""
    conditional = 0
    for line in lines:
        mnemonic = line.mnemonic.partition(".")[0]
        if conditional:
            mnemonic = mnemonic[:-_CONDITION]
        yield _instruction(line, mnemonic, skippable=conditional > 0)
        conditional = max(0, conditional - 1)
        if block := _IT.match(mnemonic):
            conditional = 1 + len(block[1])


def _instruction(line: Line, mnemonic: str, *, skippable: bool) -> Instruction:
    operands = line.operands
    facts, registers = set(), 0
    address, listed = _ADDRESS.search(operands), _LIST.search(operands)
    places = _registers(address[1]) if address else frozenset()
    if address:
        facts |= {"pc_relative"} if "pc" in places else set()
        facts |= {"register_offset"} if len(_REGISTER.findall(address[1])) > 1 else set()
        facts |= {"writeback"} if address[2] else set()
    if listed:
        members = _members(listed[1])
        registers = sum(2 if name[0] == "d" else 1 for name in members)
    plain = _REGISTER.findall(operands)
    facts |= {"double"} if any(name[0] == "d" for name in plain) else set()
    # Half of a double, `d0[1]`, is another matter.
    of_core = mnemonic == "vmov" and not address and any(name[0] not in "sdq" or name in _CORE for name in plain)
    facts |= {"core_register"} if of_core else set()
    reads, writes = _read_and_written(mnemonic, operands, places, frozenset(_members(listed[1])) if listed else None)
    if "pc" in writes:
        facts.add("writes_pc")
    return Instruction(
        line.address,
        line.size,
        f"{line.mnemonic} {operands}".strip(),
        mnemonic,
        reads,
        writes,
        places,
        registers,
        frozenset(facts),
        skippable,
    )


def _read_and_written(
    mnemonic: str, operands: str, places: frozenset[str], listed: frozenset[str] | None
) -> tuple[frozenset[str], frozenset[str]]:
    stores = mnemonic.startswith(("str", "stm", "vst", "push", "vpush"))
    if listed is not None:
        base = _registers(_LIST.sub("", operands)) or {"sp"}
        return (listed | base, frozenset()) if stores else (frozenset(base), listed)
    given = [_name(name) for name in _REGISTER.findall(_ADDRESS.sub("", operands))]
    if stores or mnemonic in _NOTHING_WRITTEN or _BRANCH.match(mnemonic):
        return frozenset(given) | places, frozenset()
    results = 2 if mnemonic.startswith(_TWO_RESULTS) else 1
    written = frozenset(given[:results])
    read = frozenset(given[results:]) | places
    # `adds r0, #1` and `muls r0, r1, r0` read what they write; so do sums onto a register.
    short = len(given) <= 2 and not places and mnemonic not in _MOVES and operands.count(",") < 2
    return (read | written if short or mnemonic.startswith(_RESULT_IS_READ) else read), written


def _members(text: str) -> list[str]:
    """The registers of a list, `s0-s3` written out."""
    spans = _SPAN.sub(lambda span: ", ".join(f"{span[1]}{n}" for n in range(int(span[2]), int(span[3]) + 1)), text)
    return [_name(name) for name in _REGISTER.findall(spans)]


def _registers(text: str) -> frozenset[str]:
    return frozenset(_name(name) for name in _REGISTER.findall(text))


def _name(register: str) -> str:
    return _CALLED.get(register, register)
