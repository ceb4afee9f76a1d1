"""Timing models (`timings:` in YAML): cycles of a core's instructions, by its manual.

A model sorts instructions into classes by mnemonic. It has the cycles of each class, and the cycles that certain pairs
of consecutive instructions cost or save. If a manual leaves a figure open, the model has a range: [least, estimate,
most], or [least, most], with the most as the estimate. `pipeline:` and the classes' `latency`, `units` and `reads`
describe an in-order pipeline that issues several instructions at once (stages/backends/timing/pipeline.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from stages.support.messages.wording import did_you_mean
from stages.support.options.strict_model import StrictModel, mistake

_BACKENDS = Path(__file__).resolve().parents[1]
_LIMIT = 1000
_PARTS = 3
_AMOUNTS = frozenset(("cycles", "per_register", "taken", "not_taken", "missed", "latency", "busy"))


def parse_cycles(value: object) -> object:
    """Return (least, estimate, most) for `3`, `[2, 12]` or `[1, 2, 3]`."""
    given = value if isinstance(value, list | tuple) else [value]
    numbers = [each for each in given if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(numbers) != len(given) or not 1 <= len(numbers) <= _PARTS or any(abs(each) > _LIMIT for each in numbers):
        raise ValueError("cycles are a number, [least, most] or [least, estimate, most]")
    least, most = numbers[0], numbers[-1]
    estimate = numbers[1] if len(numbers) == _PARTS else most
    if not least <= estimate <= most:
        raise ValueError(f"the cycles {numbers} must rise")
    return (least, estimate, most)


def _parse_amount(value: object) -> object:
    return value if isinstance(value, str) else parse_cycles(value)


@cache
def decoders() -> dict[str, str]:
    """Return the family of each decoder `stages/backends/<family>/decode_<instructions>.py`."""
    paths = sorted(_BACKENDS.glob("*/decode_*.py"))
    return {path.stem.removeprefix("decode_"): path.parent.name for path in paths}


def decoder(instructions: str) -> Any:
    """Return the module that decodes these instructions.

    It is imported by name: a key has one family's decoder.
    """
    return import_module(f"stages.backends.{decoders()[instructions]}.decode_{instructions}")


#: Least, estimate, most.
Cycles = tuple[float, float, float]
Stated = Annotated[Cycles, BeforeValidator(parse_cycles)]
#: Cycles, or the name of a parameter.
Amount = Annotated[Cycles | str, BeforeValidator(_parse_amount)]
NONE: Cycles = (0, 0, 0)

#: What is known of an instruction beside its mnemonic (stages/backends/timing/instruction.py).
Fact = Literal[
    "writes_pc",
    "pc_relative",
    "register_offset",
    "writeback",
    "double",
    "core_register",
    "short",
    "shifted",
    "backward",
    "gather",
    "bytes",
    "predicated",
    "lane",
]
#: Operands by use: of an address, a sum's start, what a store stores; any other.
Operand = Literal["address", "accumulator", "data", "other"]


class InstructionClass(StrictModel):
    """Instructions that take the same time.

    mnemonics     patterns (`smla*`) of mnemonics, without width, condition and type: `ldr` for `ldrne.w`; of RISC-V
                  without `c.`
    has           further conditions
    cycles        cycles if the next executed instruction is the next in memory
    per_register  extra cycles for each 32-bit register of its list
    taken         extra cycles if it branches
    not_taken     extra cycles if it does not
    missed        extra cycles of a branch that is predicted wrong, by a counter of two bits for each branch
    latency       cycles from its issue until another instruction can use its results; default: `cycles`
    units         units that it needs at its issue
    busy          cycles for which it occupies these units
    reads         cycles from its issue until it needs an operand, by use; default 0; below 0: before the issue
    slot          its place in a group of instructions issued at once
    """

    mnemonics: tuple[str, ...] = Field(min_length=1)
    has: tuple[Fact, ...] = ()
    cycles: Amount
    per_register: Amount = NONE
    taken: Amount = NONE
    not_taken: Amount = NONE
    missed: Amount = NONE
    latency: Amount | None = None
    units: tuple[str, ...] = ()
    busy: Amount = (1, 1, 1)
    reads: dict[Operand, Amount] = Field(default_factory=dict)
    slot: Literal["any", "first", "last", "alone"] = "any"

    @model_validator(mode="after")
    def _check(self) -> InstructionClass:
        for name in ("cycles", "per_register", "taken", "not_taken", "missed", "latency", "busy"):
            value = getattr(self, name)
            if isinstance(value, tuple) and value[0] < 0:
                raise mistake("the cycles of an instruction must not be negative", name)
        return self


class Pair(StrictModel):
    """Extra cycles (negative: fewer) of class `then` right after class `first`.

    The first matching pair applies.

    when  `uses`: `then` reads a result of `first`; `addresses`: as a memory address; `not_addresses`: not as an address
    """

    first: tuple[str, ...] = Field(min_length=1)
    then: tuple[str, ...] = Field(min_length=1)
    when: Literal["always", "uses", "addresses", "not_addresses"] = "always"
    cycles: Amount


class Together(StrictModel):
    """Classes that may issue in the same cycle: one of `first` before one of `then`.

    `*` is any class.
    """

    first: tuple[str, ...] = Field(min_length=1)
    then: tuple[str, ...] = Field(min_length=1)


class Pipeline(StrictModel):
    """`pipeline:` of a timing model: instructions that an in-order core issues together.

    width     most instructions issued in a cycle
    units     how many there are of each unit
    together  pairs of classes that may issue together; default: all, as far as there are units
    short     whether only instructions of 2 bytes issue together
    """

    width: int = Field(default=1, ge=1, le=8)
    units: dict[str, Annotated[int, Field(ge=1, le=16)]] = Field(default_factory=dict)
    together: tuple[Together, ...] = ()
    short: bool = False


class Parameter(StrictModel):
    """One entry under `parameters:`: a figure that classes and pairs use by name.

    cycles  the figure
    source  where it is from, or `fitted` (`doit bench suite=silicon --fit`)
    try     figures that the fit tries
    """

    cycles: Stated
    source: str = Field(min_length=1)
    candidates: tuple[float, ...] = Field(default=(), alias="try")


class Timing(StrictModel):
    """One entry under `timings:`.

    title             name of the core, for reports
    source            source of its figures
    instructions      decoder of the disassembly
    classes           by name; the first that matches an instruction counts
    pairs             of consecutive instructions
    pipeline          instructions that are issued together, and units
    parameters        figures by name
    skipped           cycles of an instruction whose condition fails
    unaligned_target  extra cycles for a jump to a 32-bit instruction that is not at a multiple of four
    """

    title: str = Field(min_length=1)
    source: str = Field(min_length=1)
    instructions: str
    classes: dict[str, InstructionClass] = Field(min_length=1)
    pairs: tuple[Pair, ...] = ()
    pipeline: Pipeline = Field(default_factory=Pipeline)
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    skipped: int = Field(default=1, ge=0, le=_LIMIT)
    unaligned_target: Amount = NONE

    @model_validator(mode="after")
    def _check(self) -> Timing:
        if self.instructions not in decoders():
            names = ", ".join(decoders())
            raise mistake(f"there is no decoder for {self.instructions!r}; there are {names}", "instructions")
        for number, pair in enumerate(self.pairs):
            self._check_classes(pair, "pairs", number)
        for number, together in enumerate(self.pipeline.together):
            self._check_classes(together, "pipeline", "together", number)
        for name, rule in self.classes.items():
            for number, unit in enumerate(rule.units):
                if unit not in self.pipeline.units:
                    known = ", ".join(self.pipeline.units) or "none"
                    raise mistake(f"there is no unit {unit!r}; there are {known}", "classes", name, "units", number)
        self.resolved()
        return self

    def _check_classes(self, pair: Pair | Together, *at: str | int) -> None:
        for side in ("first", "then"):
            for place, name in enumerate(getattr(pair, side)):
                if name not in self.classes and not (name == "*" and isinstance(pair, Together)):
                    known = ", ".join(self.classes)
                    raise mistake(f"there is no class {name!r}; there are {known}", *at, side, place)

    def resolved(self, values: Mapping[str, Cycles] | None = None) -> Timing:
        """Return the model with figures for parameter names; `values` replace figures by name."""
        figures = {name: parameter.cycles for name, parameter in self.parameters.items()} | dict(values or {})
        classes = {name: _with_figures(rule, figures, "classes", name) for name, rule in self.classes.items()}
        pairs = tuple(_with_figures(pair, figures, "pairs", number) for number, pair in enumerate(self.pairs))
        unaligned = _figure(self.unaligned_target, figures, "unaligned_target")
        return self.model_copy(update={"classes": classes, "pairs": pairs, "unaligned_target": unaligned})


def parameters_of(rule: InstructionClass | Pair | Timing) -> set[str]:
    """Return the names of the parameters that a class or a pair uses.

    For a model: those used outside of its classes and pairs.
    """
    amounts = [getattr(rule, key) for key in (*_AMOUNTS, "unaligned_target") if key in type(rule).model_fields]
    amounts += rule.reads.values() if isinstance(rule, InstructionClass) else ()
    return {amount for amount in amounts if isinstance(amount, str)}


_Rule = TypeVar("_Rule", InstructionClass, Pair)


def _with_figures(rule: _Rule, figures: Mapping[str, Cycles], *at: str | int) -> _Rule:
    update: dict[str, Any] = {}
    for key in _AMOUNTS & type(rule).model_fields.keys():
        update[key] = _figure(getattr(rule, key), figures, *at, key)
    if isinstance(rule, InstructionClass):
        update["reads"] = {use: _figure(value, figures, *at, "reads", use) for use, value in rule.reads.items()}
    return rule.model_copy(update=update)


def _figure(value: Cycles | str | None, figures: Mapping[str, Cycles], *at: str | int) -> Cycles | None:
    if not isinstance(value, str):
        return value
    if value not in figures:
        raise mistake(f"there is no parameter {value!r}{did_you_mean(value, figures)}", *at)
    return figures[value]


class TimingModel(Timing):
    """A timing model with its name, as a target has it."""

    name: str
