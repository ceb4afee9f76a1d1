"""Lines of Thumb disassembly as instructions.

Armv7-M Architecture Reference Manual, A7.7; IT blocks: A7.3. MVE, VPT blocks and low-overhead loops: Armv8-M
Architecture Reference Manual, B5 and C2.4.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from stages.backends.timing.disassembly import Line
from stages.backends.timing.instruction import Instruction

_REGISTER = re.compile(r"\b(?:r1[0-5]|r[0-9]|sb|sl|fp|ip|sp|lr|pc|[sdq][0-9]{1,2})\b")
_CALLED = {"sb": "r9", "sl": "r10", "fp": "r11", "ip": "r12"}
_CORE = frozenset(("sb", "sl", "sp"))
_IT = re.compile(r"^it([te]{0,3})$")
_VPT = re.compile(r"^vp(?:st|t)([te]{0,3})$")
_TARGET = re.compile(r"(?:^|, )([0-9a-f]+)$")
_SHIFTED = re.compile(r", (?:ls[lr]|asr|ror) #|, rrx")
_LIST = re.compile(r"\{([^}]*)\}")
_ADDRESS = re.compile(r"\[([^\]]*)\](!|, .+)?")
_SPAN = re.compile(r"\b([sd])(\d+)-[sd](\d+)\b")
_LANE = re.compile(r"\b[dq]\d+\[")
_BYTES = re.compile(r"\.[su]?8$")
_CONDITION = 2  # letters
_SHORT = 2  # bytes
_STORES = ("str", "stm", "vst", "push", "vpush")
_NOTHING_WRITTEN = frozenset(("cmp", "cmn", "tst", "teq", "vcmp", "vcmpe", "vmrs", "cbz", "cbnz", "tbb", "tbh", "vctp"))
_LOOP = re.compile(r"^(?:[wd]ls|le)(?:tp)?$")
_BRANCH = re.compile(r"^b(?:l|x|lx|eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?$")
_MOVES = (
    *("mov", "mvn", "adr", "vmov", "sxt", "uxt", "clz", "rbit", "rev", "vmvn", "vrev", "vdup", "vclz", "vcls"),
    *("vaddv", "cset", "cinc", "dls", "wls"),
)
_TWO_RESULTS = (
    *("umull", "smull", "umlal", "smlal", "umaal", "smlsld", "ldrd", "vaddlv", "asrl", "lsll", "lsrl"),
    *("vmlaldav", "vmlsldav", "vrmlaldavh", "vrmlsldavh", "sqrshrl", "uqrshll", "sqshll", "uqshll", "srshrl", "urshrl"),
)
# What they write is a sum that they continue; of MLA, SMLAD and the like it is the last operand.
_SUMS = (
    *("smlal", "umlal", "umaal", "vmla", "vmls", "vfma", "vfms", "vnml", "vfnm", "vrmla", "vrmls", "vaddva", "vaddlva"),
    *("vabav", "vqdmla", "vqrdmla", "vqdmls", "vqrdmls", "vcmla"),
)
_LAST_IS_SUM = re.compile(r"^(?:ml[as]|sml[as](?!l)|smml[as]|usada8)")
_RESULT_IS_READ = (
    *(*_SUMS, "mla", "mls", "movt", "bfi", "asrl", "lsll", "lsrl", "sqrshr", "uqrshl", "sqshl", "uqshl", "srshr"),
    *("urshr", "vminv", "vmaxv", "vminav", "vmaxav", "vmovn", "vqmov", "vshrn", "vrshrn", "vqshrn", "vqrshrn"),
    *("vqshrun", "vqrshrun", "vsli", "vsri", "vpnot"),
)


def objdump_options(isa: str) -> tuple[str, ...]:
    """Return options of objdump: it prints vector instructions only for this architecture."""
    return ("-m", "armv8.1-m.main") if isa.startswith("armv8.1-m") else ()


def declared(_word: int, _extensions: Mapping[str, str]) -> tuple[str, str]:
    """Return no mnemonic and operands for a word that objdump does not know: it is data."""
    return ("", "")


def decode(lines: Iterable[Line]) -> Iterator[Instruction]:
    """Yield the instructions.

    In an IT block the mnemonic is without the condition, in a VPT block without T or E.
    """
    conditional = predicated = 0
    for line in lines:
        mnemonic = line.mnemonic.partition(".")[0]
        if conditional:
            mnemonic = mnemonic[:-_CONDITION]
        if predicated:
            mnemonic = mnemonic[:-1]
        yield _instruction(line, mnemonic, skippable=conditional > 0, is_predicated=predicated > 0)
        conditional, predicated = max(0, conditional - 1), max(0, predicated - 1)
        if block := _IT.match(mnemonic):
            conditional = 1 + len(block[1])
        elif block := _VPT.match(mnemonic):
            predicated = 1 + len(block[1])


def _instruction(line: Line, mnemonic: str, *, skippable: bool, is_predicated: bool) -> Instruction:
    operands = line.operands
    facts, registers = {"predicated"} if is_predicated else set(), 0
    address, listed = _ADDRESS.search(operands), _LIST.search(operands)
    places = _registers(address[1]) if address else frozenset()
    if address:
        facts |= {"pc_relative"} if "pc" in places else set()
        facts |= {"register_offset"} if len(_REGISTER.findall(address[1])) > 1 else set()
        facts |= {"writeback"} if address[2] else set()
        if any(name[0] == "q" for name in places):
            facts |= {"gather", "bytes"} if _BYTES.search(line.mnemonic) else {"gather"}
    if listed:
        members = _members(listed[1])
        registers = sum(2 if name[0] == "d" else 1 for name in members)
    plain = _REGISTER.findall(operands)
    facts |= {"double"} if any(name[0] == "d" for name in plain) else set()
    # Half of a double, `d0[1]`, is another matter.
    of_core = mnemonic == "vmov" and not address and any(name[0] not in "sdq" or name in _CORE for name in plain)
    facts |= {"core_register"} if of_core else set()
    facts |= {"lane"} if mnemonic == "vmov" and _LANE.search(operands) else set()
    reads, writes = _read_and_written(mnemonic, operands, places, frozenset(_members(listed[1])) if listed else None)
    if "pc" in writes:
        facts.add("writes_pc")
    target = _target(mnemonic, operands)
    facts |= {"short"} if line.size == _SHORT else set()
    facts |= {"shifted"} if _SHIFTED.search(_ADDRESS.sub("", operands)) else set()
    facts |= {"backward"} if 0 <= target <= line.address else set()
    base = places if address and address[2] else frozenset()
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
        _accumulators(mnemonic, operands, reads, writes),
        reads - places if mnemonic.startswith(_STORES) else frozenset(),
        _registers(_LIST.sub("", operands)) if listed and "!" in operands else base,
        target,
    )


def _target(mnemonic: str, operands: str) -> int:
    """Return the address in a branch, or -1."""
    if not (_BRANCH.match(mnemonic) or _LOOP.match(mnemonic) or mnemonic in ("cbz", "cbnz")):
        return -1
    target = _TARGET.search(operands)
    return int(target[1], 16) if target else -1


def _accumulators(mnemonic: str, operands: str, reads: frozenset[str], writes: frozenset[str]) -> frozenset[str]:
    if mnemonic.startswith(_SUMS):
        return reads & writes
    return frozenset((_name(operands.rpartition(" ")[2]),)) if _LAST_IS_SUM.match(mnemonic) else frozenset()


def _read_and_written(
    mnemonic: str, operands: str, places: frozenset[str], listed: frozenset[str] | None
) -> tuple[frozenset[str], frozenset[str]]:
    stores = mnemonic.startswith(_STORES)
    if listed is not None:
        base = _registers(_LIST.sub("", operands)) or {"sp"}
        return (listed | base, frozenset()) if stores else (frozenset(base), listed)
    given = [_name(name) for name in _REGISTER.findall(_ADDRESS.sub("", operands))]
    if stores or mnemonic in _NOTHING_WRITTEN or _BRANCH.match(mnemonic) or _VPT.match(mnemonic):
        return frozenset(given) | places, frozenset()
    results = 2 if mnemonic.startswith(_TWO_RESULTS) else 1
    written = frozenset(given[:results])
    read = frozenset(given[results:]) | places
    # `adds r0, #1` and `muls r0, r1, r0` read what they write; so do sums onto a register.
    short = len(given) <= 2 and not places and operands.count(",") < 2 and not mnemonic.startswith(_MOVES)
    return (read | written if short or mnemonic.startswith(_RESULT_IS_READ) else read), written


def _members(text: str) -> list[str]:
    """The registers of a list, `s0-s3` written out."""
    spans = _SPAN.sub(lambda span: ", ".join(f"{span[1]}{n}" for n in range(int(span[2]), int(span[3]) + 1)), text)
    return [_name(name) for name in _REGISTER.findall(spans)]


def _registers(text: str) -> frozenset[str]:
    return frozenset(_name(name) for name in _REGISTER.findall(text))


def _name(register: str) -> str:
    return _CALLED.get(register, register)
