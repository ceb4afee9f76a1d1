"""Lines of RISC-V disassembly (`-M no-aliases`) as instructions.

The RISC-V Instruction Set Manual, volume I.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from stages.backends.riscv.instructions.declaration import instruction_set
from stages.backends.timing.disassembly import Line
from stages.backends.timing.instruction import Instruction

_REGISTER = re.compile(
    r"\b(?:zero|ra|sp|gp|tp|a[0-7]|t[0-6]|s1[01]|s[0-9]|f[ats]1[01]|f[ats][0-9]|v[12]?[0-9]|v3[01])\b"
)
_ADDRESS = re.compile(r"\(([a-z0-9]+)\)")
_STORE = re.compile(r"^(?:s[bhwd]|f?s[wd]sp|f?s[wd]|fs[hwdq]|vs(?:s?(?:seg\d)?e\d+|[uo]x(?:seg\d)?ei\d+|m|\dr)\.v)$")
_ACCUMULATES = re.compile(r"^v(?:f?w?n?m(?:acc|add|sac|sub)|qdot|dot4a)")
_BRANCH = re.compile(r"^b(?:eq|ne|lt|ge|ltu|geu|eqz|nez)$")
_FIELDS = {"d": 7, "a": 15, "b": 20, "c": 27}
_NAMES = [
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1"),
    *(f"a{number}" for number in range(8)),
    *(f"s{number}" for number in range(2, 12)),
    *("t3", "t4", "t5", "t6"),
]
_TARGET = re.compile(r"(?:^|,)([0-9a-f]+)$")
_SHORT = 2  # bytes
_OVERWRITES = frozenset(("mv", "li", "lui", "auipc", "addi4spn", "lw", "lwsp", "jal"))
_NO_RESULT = frozenset(("j", "jr", "nop", "ebreak", "ecall", "fence", "fence.i", "mret"))


def objdump_options(_isa: str) -> tuple[str, ...]:
    """Return options of objdump that turn off aliases, such as `mv` for `addi`."""
    return ("-M", "no-aliases")


def declared(word: int, extensions: Mapping[str, str]) -> tuple[str, str]:
    """Return mnemonic and operands of a word that objdump does not know; both empty for data.

    `extensions` are the target's declared ones, such as {"rvp": "0.9.11"}. In the result `p.smaqa`, `a0+,a1,a2` the
    instruction adds to a0.
    """
    for name, (match, mask, operands) in _encodings(extensions.get("rvp", "")).items():
        if word & mask == match:
            named = [_operand(word, operand) for operand in operands if operand[0] != "n"]
            return (f"p.{name}", ",".join(named))
    return ("", "")


@cache
def _encodings(version: str) -> dict[str, tuple[int, int, tuple[str, ...]]]:
    if not version:
        return {}
    declared = instruction_set("rvp", version)
    instructions = {**declared.on(64), **declared.on(32)}
    return {
        name: (instruction.encoding.match, instruction.encoding.mask, instruction.operands)
        for name, instruction in instructions.items()
    }


def _operand(word: int, operand: str) -> str:
    at = _FIELDS[operand[0].lower()]
    return _NAMES[word >> at & 0x1F] + operand[1:]


def decode(lines: Iterable[Line]) -> Iterator[Instruction]:
    """Yield the instructions. Mnemonics of compressed ones are without `c.`."""
    for line in lines:
        mnemonic = line.mnemonic.removeprefix("c.")
        places = frozenset(_ADDRESS.findall(line.operands))
        given = _REGISTER.findall(_ADDRESS.sub("", line.operands))
        is_sum = "+" in line.operands or _ACCUMULATES.match(mnemonic) is not None
        reads, writes = _read_and_written(mnemonic, given, compressed=line.mnemonic.startswith("c."), is_sum=is_sum)
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
            accumulators=reads & writes if is_sum else frozenset(),
            data=reads - places if _STORE.match(mnemonic) else frozenset(),
            target=to,
        )


def _read_and_written(
    mnemonic: str, given: list[str], *, compressed: bool, is_sum: bool
) -> tuple[frozenset[str], frozenset[str]]:
    if _STORE.match(mnemonic) or _BRANCH.match(mnemonic) or mnemonic in _NO_RESULT or not given:
        return frozenset(given), frozenset()
    if compressed and mnemonic == "jalr":
        return frozenset(given), frozenset({"ra"})
    reads_result = is_sum or (compressed and mnemonic not in _OVERWRITES)
    read = given if reads_result else given[1:]
    return frozenset(read), frozenset(given[:1])
