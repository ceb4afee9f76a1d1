"""The table of a firmware's instructions with their cycles, for the simulators' plug-ins.

A header {uint32 magic 'FLCY', entries, whether to count instructions, 0} and `struct flash` (all 0 without wait
states), then for each instruction, sorted by address, `struct timed`. Both are of
stages/backends/simulators/cycles/cycles.h. An entry has cycles after the instruction before it in memory, cycles after
a jump to it, and extra cycles if it jumps, each as least, estimate and most; and extra cycles if it is predicted wrong.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from stages.backends.targets.flash import WINDOWS
from stages.backends.targets.spec import Target
from stages.backends.targets.timing import NONE, Cycles, InstructionClass, Pair, Timing, decoder
from stages.backends.timing.disassembly import Line, disassemble
from stages.backends.timing.instruction import Instruction
from stages.backends.timing.log import Counts
from stages.backends.timing.pipeline import Step, costs, distances

if TYPE_CHECKING:
    Decoder = Callable[[Iterable[Line]], Iterator[Instruction]]

_MAGIC = int.from_bytes(b"FLCY", "little")
_HEADER = struct.Struct("<4I")
_FLASH = struct.Struct(f"<{2 * WINDOWS}Q8I")
_ENTRY = struct.Struct("<QBB2x10f4x")
#: Flags of an entry.
UNTIMED, JUMPS, OPENS, READS, PREDICTED = 1, 2, 4, 8, 16
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
    missed: float = 0


def timing_table(elf: Path, target: Target, *, counts: bool = False) -> bytes:
    """Return the table of a linked firmware for the target's timing model. Raises StageError.

    With `counts` the simulator also writes how often each instruction ran (`interval_counts` in log.py).
    """
    assert target.timing_model is not None
    lines = list(disassemble(elf, target))
    marks = _marks(lines) if target.counter == "minstret" else {}
    by_address = {entry.instruction.address: entry for entry in timed(lines, target.timing_model)}
    entries = [_entry(by_address[address], marks.get(address, 0)) for address in sorted(by_address)]
    return _HEADER.pack(_MAGIC, len(entries), counts, 0) + _flash(target) + b"".join(entries)


def timed(lines: Iterable[Line], model: Timing) -> list[Timed]:
    """Return the instructions with their cycles, which depend on those before them."""
    decode: Decoder = decoder(model.instructions).decode
    return timed_instructions(list(decode(lines)), model)


def timed_instructions(instructions: Sequence[Instruction], model: Timing) -> list[Timed]:
    """Return instructions in the order of memory with their cycles."""
    model = model.resolved()
    steps, ranges = _steps(instructions, kinds_of(instructions, model), model)
    follows, entered = distances(steps, model.pipeline)
    return [
        _timed(step, one, ranges[number], follows[number], entered.get(number), model)
        for number, (step, one) in enumerate(zip(steps, instructions, strict=True))
    ]


def kinds_of(instructions: Iterable[Instruction], model: Timing) -> list[str]:
    """Return the class of each instruction, '' if none has it."""
    classify = _classifier(model)
    return [classify(one.mnemonic, one.facts) for one in instructions]


def estimated(
    instructions: Sequence[Instruction], kinds: Sequence[str], counts: Mapping[int, Counts], model: Timing
) -> float:
    """Return the estimated cycles of a run; `counts` has executions by instruction number.

    The model's parameters are resolved.
    """
    steps, ranges = _steps(instructions, kinds, model)
    follows, entered = distances(steps, model.pipeline)
    unaligned, total = _stated(model.unaligned_target)[1], 0.0
    for number, (followed, jumped_to, jumped, missed) in counts.items():
        if (step := steps[number]) is not None:
            one = instructions[number]
            late = unaligned if one.size == 4 and one.address % 4 else 0
            total += followed * follows[number] + jumped * step.costs.taken + missed * step.costs.missed
            total += jumped_to * (entered.get(number, ranges[number][0][1]) + late)
    return total


def _steps(
    instructions: Sequence[Instruction], kinds: Sequence[str], model: Timing
) -> tuple[list[Step | None], list[tuple[Cycles, Cycles]]]:
    """Return the steps of a resolved model with their cycles.

    Each has the cycles of its class, and the extra ones of the pair with the step before.
    """
    costs_of = {name: costs(rule) for name, rule in model.classes.items()}
    ranges: list[tuple[Cycles, Cycles]] = []
    steps: list[Step | None] = []
    before: Instruction | None = None
    for number, (one, kind) in enumerate(zip(instructions, kinds, strict=True)):
        is_next = before is not None and before.end == one.address
        alone = _alone(one, model.classes[kind], model) if kind else NONE
        extra = _paired(before, one, kinds[number - 1], kind, model.pairs) if before is not None and is_next else NONE
        steps.append(Step(one, kind, costs_of[kind], alone[1], extra[1], is_next) if kind else None)
        ranges.append((alone, extra))
        before = one
    return steps, ranges


def _timed(
    step: Step | None,
    instruction: Instruction,
    ranges: tuple[Cycles, Cycles],
    follows: float,
    entered: float | None,
    model: Timing,
) -> Timed:
    if step is None:
        return Timed(instruction, "", NONE, NONE, NONE, UNTIMED)
    alone, extra = ranges
    missed = step.costs.missed
    taken = _stated(model.classes[step.kind].taken)
    flags = (JUMPS if taken[2] else 0) | (PREDICTED if missed else 0)
    is_unaligned = instruction.size == 4 and instruction.address % 4 != 0
    jumped = _around(step.cycles if entered is None else entered, alone)
    jumped = _plus(jumped, _stated(model.unaligned_target)) if is_unaligned else jumped
    return Timed(instruction, step.kind, _around(follows, _plus(alone, extra)), jumped, taken, flags, missed)


def _around(estimate: float, stated: Cycles) -> Cycles:
    """Return an estimate with the range of a stated figure."""
    return (estimate + stated[0] - stated[1], estimate, estimate + stated[2] - stated[1])


def _stated(amount: Cycles | str) -> Cycles:
    assert isinstance(amount, tuple)  # not the name of a parameter
    return amount


def _classifier(model: Timing) -> Callable[[str, frozenset[str]], str]:
    @cache
    def classify(mnemonic: str, facts: frozenset[str]) -> str:
        for name, rule in model.classes.items():
            if facts.issuperset(rule.has) and any(fnmatchcase(mnemonic, pattern) for pattern in rule.mnemonics):
                return name
        return ""

    return classify


def _alone(instruction: Instruction, rule: InstructionClass, model: Timing) -> Cycles:
    least, estimate, most = _stated(rule.cycles)
    if instruction.registers:
        least, estimate, most = _plus(_stated(rule.cycles), *[_stated(rule.per_register)] * instruction.registers)
    return (
        (min(least, model.skipped), estimate, max(most, model.skipped))
        if instruction.skippable
        else (least, estimate, most)
    )


def _paired(before: Instruction, instruction: Instruction, first: str, then: str, pairs: Sequence[Pair]) -> Cycles:
    """Return the extra cycles of the first pair that fits."""
    for pair in pairs:
        if first in pair.first and then in pair.then and _holds(pair, before, instruction):
            return _stated(pair.cycles)
    return NONE


def _holds(pair: Pair, before: Instruction, instruction: Instruction) -> bool:
    if pair.when == "always":
        return True
    if pair.when == "uses":
        return not before.writes.isdisjoint(instruction.reads)
    return before.writes.isdisjoint(instruction.addresses) == (pair.when == "not_addresses")


def _plus(*parts: Cycles) -> Cycles:
    least, estimate, most = (sum(numbers) for numbers in zip(*parts, strict=True))
    return (least, estimate, most)


def _flash(target: Target) -> bytes:
    if target.flash is None or target.memory is None:
        return bytes(_FLASH.size)
    flash, regions = target.flash, [target.memory.regions[name] for name in target.flash.region]
    unused = [0] * (WINDOWS - len(regions))
    windows = (*(one.origin for one in regions), *unused, *(one.end for one in regions), *unused)
    lines = (flash.cache_lines or flash.instruction_lines, flash.data_lines, flash.cache_lines > 0, flash.ways)
    return _FLASH.pack(*windows, *flash.wait_states, flash.line, flash.prefetch, *lines)


def _marks(lines: Sequence[Line]) -> dict[int, int]:
    """Return the flags of the instructions that read the counter of a RISC-V program."""
    inside = [line for line in lines if line.function == _READER]
    reads = [line.address for line in inside if line.mnemonic == "csrrs" and line.operands.split(",")[1] in _COUNTERS]
    opens = {line.address for line in inside[:1]}  # on RV64 it also reads
    return {address: OPENS * (address in opens) | READS * (address in reads) for address in {*opens, *reads}}


def _entry(timed: Timed, mark: int) -> bytes:
    at = timed.instruction
    return _ENTRY.pack(
        at.address, at.size, timed.flags | mark, *timed.follows, *timed.entered, *timed.taken, timed.missed
    )
