"""Measurements on silicon: times of known programs on known chips, with their sources.

The files hold chips and rows: `silicon.yaml` beside this module, and the project's own. `doit bench suite=silicon`
compares timing models with them. `pipeline/recipes/silicon.py` reads both files and reports mistakes with their line.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from stages.backends.targets.flash import Flash
from stages.backends.targets.frequency import Frequency
from stages.support.messages.wording import did_you_mean, in_lines
from stages.support.options.names import Name
from stages.support.options.strict_model import StrictModel, mistake

BUILT_IN = Path(__file__).with_suffix(".yaml")
CLOSED, FIRMLINE = "closed", "firmline"
#: End of the name of a chip that a run on a board added: the board as after a reset.
RESET = "-reset"
#: A program that the row ran; `closed` is code that nobody else can compile.
Code = Literal[
    "closed",
    "cmsis-nn",
    "tinymaix",
    "firmline",
    "esp-nn",
    "coremark",
    "embench",
    "embench-0.5",
    "microtvm",
    "executorch",
    "tflm",
    "tinymind",
    "tinyengine",
    "cmix-nn",
    "muriscv-nn",
]
Text = Annotated[str, Field(min_length=1)]


def _without_unit(value: object) -> object:
    if isinstance(value, str):
        raise ValueError(f"should be a number; its unit is in the key, is {value!r}")
    return value


Positive = Annotated[float, BeforeValidator(_without_unit), Field(gt=0, lt=1e15)]
# Where a message refers to, instead of listing more names than this.
_LISTED = 8
_LISTS = {"chip": "stages/backends/timing/silicon.yaml", "core": "doit targets", "board": "doit boards"}
Argument = int | bool | Text | tuple[int, ...]


class Chip(StrictModel):
    """A chip, or a core in a simulation of its hardware.

    core        core or timing model of Firmline, if there is one
    core_title  name of the core, if Firmline has none
    clock       of its measurements that state none
    board       a board of the catalogue whose `flash:` it has
    flash       its flash memory; without `board` and `flash`, memory has no wait states
    memory      where code and data are
    wait_states_known  false: nobody states the timing of its memory, so that its rows are not compared
    source      data sheet, reference manual or page
    """

    title: Text
    core: Name | None = None
    core_title: Text | None = None
    clock: Annotated[Frequency, Field(ge=100_000)]
    board: Name | None = None
    flash: Flash | None = None
    memory: Text | None = None
    wait_states_known: bool = True
    source: Text

    @model_validator(mode="after")
    def _check(self) -> Chip:
        if (self.core is None) == (self.core_title is None):
            raise mistake("should have either core, or core_title for a core that Firmline does not know")
        if self.board is not None and self.flash is not None:
            raise mistake("flash is that of the board; leave one of the two out", "flash")
        return self


class Measurement(StrictModel):
    """One row: a program on a chip, and its time or energy.

    chip       key of `chips`
    code       program; `closed` for code that is not public
    version    version or revision of the program
    compiler   compiler with version and flags
    run        function or network
    arguments  shape and options of the program; lists of sizes have the order height, width, channels
    variant    instructions that the code uses, such as mve, dsp or c
    clock      if it is not the chip's
    cycles     mean of one run; or `ms`
    ms         milliseconds of one run
    energy_uj  microjoules of one run
    kind       `rtl`: simulated hardware description; `fpga`: a core in programmable logic
    source     repository, revision and file, or paper
    fit        whether models may be fitted to it; see the rule in silicon.yaml
    compared   false: the time includes more than the program, or its timer is wrong; `note` says what
    """

    chip: Name
    code: Code
    version: Text
    compiler: Text
    run: Text
    arguments: dict[str, Argument] = Field(default_factory=dict)
    variant: Name | None = None
    clock: Annotated[Frequency, Field(ge=100_000)] | None = None
    cycles: Positive | None = None
    ms: Positive | None = None
    energy_uj: Positive | None = None
    kind: Literal["silicon", "rtl", "fpga"] = "silicon"
    source: Text
    fit: bool = False
    compared: bool = True
    note: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> Measurement:
        if self.cycles is not None and self.ms is not None:
            raise mistake("has cycles and ms; leave one of the two out", "ms")
        if self.cycles is None and self.ms is None and self.energy_uj is None:
            raise mistake("should have cycles, ms or energy_uj")
        if self.fit and self.code == CLOSED:
            raise mistake("closed code cannot be compiled, so no model is fitted to it", "fit")
        if self.fit and not self.compared:
            raise mistake("the row is not compared, so no model is fitted to it", "fit")
        if not self.compared and self.note is None:
            raise mistake("a row that is not compared should have a note that says why", "compared")
        return self

    @property
    def has_time(self) -> bool:
        """Whether the row has a time, not only energy."""
        return self.cycles is not None or self.ms is not None

    @property
    def identity(self) -> tuple[object, ...]:
        """The fields that identify the row; no two rows of a file may be equal in them."""
        arguments = tuple(sorted((name, repr(value)) for name, value in self.arguments.items()))
        return (self.chip, self.code, self.version, self.compiler, self.run, arguments, self.variant, self.clock)


class Silicon(StrictModel):
    """A file of measurements.

    The context of the validation may have the chips and cores known besides, the flash regions of boards, and the
    memory `regions` of cores and boards.

    shared  values for YAML's `<<`, by name; not read
    """

    schema_: Literal[1] = Field(alias="schema")
    shared: dict[Name, dict[str, Any]] = Field(default_factory=dict)
    chips: dict[Name, Chip] = Field(default_factory=dict)
    measurements: tuple[Measurement, ...] = ()

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Silicon:
        context: dict[str, Any] = info.context or {}
        for name, chip in self.chips.items():
            _check_chip(name, chip, context)
        chips = {**context.get("chips", {}), **self.chips}
        first: dict[tuple[object, ...], int] = {}
        for number, row in enumerate(self.measurements):
            if row.chip not in chips:
                raise _unknown("chip", row.chip, chips, "measurements", number, "chip")
            if (earlier := first.setdefault(row.identity, number)) != number:
                message = "measures the same as an earlier row"
                raise mistake(message, "measurements", number, beside=("measurements", earlier))
        return self

    def cycles(self, row: Measurement) -> float:
        """Return the cycles of one run of a row with a time."""
        if row.cycles is not None:
            return row.cycles
        assert row.ms is not None
        return row.ms * (row.clock or self.chips[row.chip].clock) / 1000

    def is_compared(self, row: Measurement) -> bool:
        """Whether the error of a row's prediction is due to the timing model."""
        return row.has_time and row.compared and self.chips[row.chip].wait_states_known

    def core(self, row: Measurement) -> str:
        """Return the name of the row's core: Firmline's, or the title of one that it does not know."""
        chip = self.chips[row.chip]
        return chip.core or chip.core_title or ""


def _check_chip(name: str, chip: Chip, context: Mapping[str, Any]) -> None:
    if name in context.get("chips", {}):
        raise mistake(f"{_LISTS['chip']} has this chip; choose another name", "chips", name, key=True)
    for key in ("core", "board"):
        known, value = context.get(f"{key}s"), getattr(chip, key)
        if known is not None and value is not None and value not in known:
            raise _unknown(key, value, known, "chips", name, key)
    memories = context.get("regions", {})
    there = memories.get(name.removesuffix(RESET)) or memories.get(chip.core)
    regions = context.get("boards", {}).get(chip.board, ()) if chip.flash is None else chip.flash.region
    for region in regions if there else ():
        if region not in there:
            raise _unknown("region", region, there, "chips", name, *(("flash", "region") if chip.flash else ("board",)))


def _unknown(kind: str, name: str, known: Collection[str], *at: str | int) -> PydanticCustomError:
    listed = f"known {kind}s: {', '.join(known)}" if len(known) <= _LISTED else f"{kind}s: {_LISTS[kind]}"
    return mistake(f"unknown {kind} '{name}'{did_you_mean(name, known)}\n{in_lines(listed)}", *at)
