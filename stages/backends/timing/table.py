"""The table of a firmware's instructions with their cycles, for the simulators' plug-ins.

A header {uint32 magic 'FLCY', uint32 entries} and `struct flash` (all 0 without wait states), then for each
instruction, sorted by address, `struct timed`, both of stages/backends/simulators/cycles/cycles.h: cycles after the
instruction before it in memory, cycles after a jump to it, and extra cycles if it jumps; each as least, estimate and
most.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from stages.backends.targets.timing import decoder
from stages.backends.timing.disassembly import Line, disassemble

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.backends.targets.timing import Cycles, InstructionClass, Pair, Timing
    from stages.backends.timing.instruction import Instruction

    Decoder = Callable[[Iterable[Line]], Iterator[Instruction]]

_MAGIC = int.from_bytes(b"FLCY", "little")
_HEADER = struct.Struct("<II")
_FLASH = struct.Struct("<QQ6I")
_ENTRY = struct.Struct("<QBB9hI")
#: Flags of an entry.
UNTIMED, JUMPS, OPENS, READS = 1, 2, 4, 8
# Where a RISC-V program reads its counter: stages/backends/riscv/runtime/counters.c.
_READER, _COUNTERS = "board_instructions", ("minstret", "0xb02")


@dataclass(frozen=True)
class Timed:
    """Cycles of one instruction. `kind` is its class, '' if no class of the model has it."""

    instruction: Instruction
    kind: str
    follows: Cycles
    entered: Cycles
    taken: Cycles
    flags: int = 0


def timing_table(elf: Path, target: Target) -> bytes:
    """Return the table of a linked firmware for the target's timing model. Raises StageError."""
    assert target.timing_model is not None
    lines = list(disassemble(elf, target))
    marks = _marks(lines) if target.counter == "minstret" else {}
    found = {one.instruction.address: one for one in timed(lines, target.timing_model)}
    entries = [_entry(found[address], marks.get(address, 0)) for address in sorted(found)]
    return _HEADER.pack(_MAGIC, len(entries)) + _flash(target) + b"".join(entries)


def timed(lines: Iterable[Line], model: Timing) -> Iterator[Timed]:
    """Yield each instruction with its cycles, which depend on the instruction before it."""
    classify = _classifier(model)
    before: Instruction | None = None
    kind_before = ""
    decode: Decoder = decoder(model.instructions).decode
    for one in decode(lines):
        kind = classify(one.mnemonic, one.facts)
        if not kind:
            yield Timed(one, "", (0, 0, 0), (0, 0, 0), (0, 0, 0), UNTIMED)
        else:
            rule = model.classes[kind]
            alone = _alone(one, rule, model)
            together = _plus(alone, _paired(before, one, kind_before, kind, model.pairs)) if before else alone
            unaligned = one.size == 4 and one.address % 4 != 0
            entered = _plus(alone, model.unaligned_target) if unaligned else alone
            yield Timed(one, kind, together, entered, rule.taken, JUMPS if rule.taken[2] else 0)
        before, kind_before = one, kind


def _classifier(model: Timing) -> Callable[[str, frozenset[str]], str]:
    @cache
    def classify(mnemonic: str, facts: frozenset[str]) -> str:
        for name, rule in model.classes.items():
            if facts.issuperset(rule.has) and any(fnmatchcase(mnemonic, pattern) for pattern in rule.mnemonics):
                return name
        return ""

    return classify


def _alone(one: Instruction, rule: InstructionClass, model: Timing) -> Cycles:
    least, estimate, most = _plus(rule.cycles, *[rule.per_register] * one.registers)
    return (min(least, model.skipped), estimate, max(most, model.skipped)) if one.skippable else (least, estimate, most)


def _paired(before: Instruction, one: Instruction, first: str, then: str, pairs: Sequence[Pair]) -> Cycles:
    """Return the extra cycles of the first pair that fits."""
    if before.end != one.address:
        return (0, 0, 0)
    for pair in pairs:
        if first in pair.first and then in pair.then and _holds(pair, before, one):
            return pair.cycles
    return (0, 0, 0)


def _holds(pair: Pair, before: Instruction, one: Instruction) -> bool:
    if pair.when == "always":
        return True
    if pair.when == "uses":
        return not before.writes.isdisjoint(one.reads)
    return before.writes.isdisjoint(one.addresses) == (pair.when == "not_addresses")


def _plus(*parts: Cycles) -> Cycles:
    least, estimate, most = (sum(numbers) for numbers in zip(*parts, strict=True))
    return (least, estimate, most)


def _flash(target: Target) -> bytes:
    if target.flash is None or target.memory is None:
        return _FLASH.pack(*[0] * 8)
    flash, region = target.flash, target.memory.regions[target.flash.region]
    lines = (flash.instruction_lines, flash.data_lines)
    return _FLASH.pack(region.origin, region.end, flash.wait_states, flash.line, flash.prefetch, *lines, 0)


def _marks(lines: Sequence[Line]) -> dict[int, int]:
    """Return the flags of the instructions that read the counter of a RISC-V program."""
    inside = [line for line in lines if line.function == _READER]
    reads = [line.address for line in inside if line.mnemonic == "csrrs" and line.operands.split(",")[1] in _COUNTERS]
    return {line.address: OPENS for line in inside[:1]} | dict.fromkeys(reads, READS)


def _entry(one: Timed, mark: int) -> bytes:
    at = one.instruction
    return _ENTRY.pack(at.address, at.size, one.flags | mark, *one.follows, *one.entered, *one.taken, 0)
