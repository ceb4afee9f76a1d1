"""Timing models (`timings:` in YAML): the cycles of a core's instructions, as its manual states them.

A model sorts instructions into classes by mnemonic. It has the cycles of each class, and the cycles that certain pairs
of consecutive instructions cost or save. If a manual leaves a figure open, the model has a range: [least, estimate,
most], or [least, most], with the most as the estimate.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from stages.support.options.strict_model import StrictModel, mistake

_BACKENDS = Path(__file__).resolve().parents[1]
_LIMIT = 1000
_PARTS = 3


def parse_cycles(value: object) -> object:
    """Return (least, estimate, most) for `3`, `[2, 12]` or `[1, 2, 3]`."""
    given = value if isinstance(value, list | tuple) else [value]
    numbers = [each for each in given if isinstance(each, int) and not isinstance(each, bool)]
    if len(numbers) != len(given) or not 1 <= len(numbers) <= _PARTS or any(abs(each) > _LIMIT for each in numbers):
        raise ValueError("cycles are a number, [least, most] or [least, estimate, most]")
    least, most = numbers[0], numbers[-1]
    estimate = numbers[1] if len(numbers) == _PARTS else most
    if not least <= estimate <= most:
        raise ValueError(f"the cycles {numbers} must rise")
    return (least, estimate, most)


@cache
def decoders() -> dict[str, str]:
    """Return the architecture family of each decoder `stages/backends/<family>/decode_<instructions>.py`."""
    paths = sorted(_BACKENDS.glob("*/decode_*.py"))
    return {path.stem.removeprefix("decode_"): path.parent.name for path in paths}


def decoder(instructions: str) -> Any:
    """Return the module that decodes these instructions. It is imported by name: a key has one family's decoder."""
    return import_module(f"stages.backends.{decoders()[instructions]}.decode_{instructions}")


#: Least, estimate, most.
Cycles = tuple[int, int, int]
Stated = Annotated[Cycles, BeforeValidator(parse_cycles)]
NONE: Cycles = (0, 0, 0)

#: What is known of an instruction beside its mnemonic (stages/backends/timing/instruction.py).
Fact = Literal["writes_pc", "pc_relative", "register_offset", "writeback", "double", "core_register"]


class InstructionClass(StrictModel):
    """Instructions that take the same time.

    mnemonics     patterns (`smla*`) of mnemonics, without width, condition and type: `ldr` for `ldrne.w`; of RISC-V
                  without `c.`
    has           further conditions
    cycles        cycles if the next executed instruction is the next in memory
    per_register  extra cycles for each 32-bit register of its list
    taken         extra cycles if it branches
    """

    mnemonics: tuple[str, ...] = Field(min_length=1)
    has: tuple[Fact, ...] = ()
    cycles: Stated
    per_register: Stated = NONE
    taken: Stated = NONE

    @model_validator(mode="after")
    def _check(self) -> InstructionClass:
        for name in ("cycles", "per_register", "taken"):
            if getattr(self, name)[0] < 0:
                raise mistake("the cycles of an instruction must not be negative", name)
        return self


class Pair(StrictModel):
    """Extra cycles (negative: fewer) of class `then` right after class `first`. The first pair that fits counts.

    when  `uses`: `then` reads a result of `first`; `addresses`: as a memory address; `not_addresses`: not as an address
    """

    first: tuple[str, ...] = Field(min_length=1)
    then: tuple[str, ...] = Field(min_length=1)
    when: Literal["always", "uses", "addresses", "not_addresses"] = "always"
    cycles: Stated


class Timing(StrictModel):
    """One entry under `timings:`.

    title             name of the core, for reports
    source            source of its figures
    instructions      decoder of the disassembly
    classes           by name; the first that matches an instruction counts
    pairs             of consecutive instructions
    skipped           cycles of an instruction whose condition fails
    unaligned_target  extra cycles for a jump to a 32-bit instruction that is not at a multiple of four
    """

    title: str = Field(min_length=1)
    source: str = Field(min_length=1)
    instructions: str
    classes: dict[str, InstructionClass] = Field(min_length=1)
    pairs: tuple[Pair, ...] = ()
    skipped: int = Field(default=1, ge=0, le=_LIMIT)
    unaligned_target: Stated = NONE

    @model_validator(mode="after")
    def _check(self) -> Timing:
        if self.instructions not in decoders():
            names = ", ".join(decoders())
            raise mistake(f"there is no decoder for {self.instructions!r}; there are {names}", "instructions")
        for number, pair in enumerate(self.pairs):
            for side in ("first", "then"):
                for place, name in enumerate(getattr(pair, side)):
                    if name not in self.classes:
                        known = ", ".join(self.classes)
                        raise mistake(f"there is no class {name!r}; there are {known}", "pairs", number, side, place)
        return self


class Flash(StrictModel):
    """`flash:` of a board: a memory with wait states, and its prefetch and caches.

    region             region of the board's memory
    wait_states        cycles that a read delays the core
    line               bytes of a read
    prefetch           whether the next line of instructions is read in advance
    instruction_lines  lines of the instruction cache, least recently used replaced; 0: no cache
    data_lines         the same for constants
    source             source of these figures
    """

    region: str
    wait_states: int = Field(gt=0, le=_LIMIT)
    line: int = Field(ge=4, le=256, multiple_of=4)
    prefetch: bool = False
    instruction_lines: int = Field(default=0, ge=0, le=4096)
    data_lines: int = Field(default=0, ge=0, le=4096)
    source: str = Field(min_length=1)

    @property
    def description(self) -> str:
        """Return a text: `5 wait states in rom, lines of 16 bytes, the next prefetched, 64 of instructions and 8 of
        data cached`.
        """
        kept = [
            f"{count} of {what}"
            for count, what in ((self.instruction_lines, "instructions"), (self.data_lines, "data"))
            if count
        ]
        parts = [f"{self.wait_states} wait states in {self.region}", f"lines of {self.line} bytes"]
        parts += ["the next prefetched"] if self.prefetch else []
        return ", ".join([*parts, f"{' and '.join(kept)} cached" if kept else "no cache"])


class TimingModel(Timing):
    """A timing model with its name, as a target has it."""

    name: str
