"""`flash:` of a board: memory of code and constants, its wait states, prefetch, caches."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from stages.backends.targets.memory import Memory
from stages.support.options.strict_model import StrictModel, mistake

_LIMIT = 1000
_MOST_LINES = 4096
#: Regions with one flash's timing, at most.
WINDOWS = 4
# The slowest flash of a microcontroller whose manual we know, at full supply voltage: STM32L0 and STM32L4 need a wait
# state for every 16 MHz (ST RM0377, 3.3.3; RM0351, 3.3.3). An unknown flash answers at least as fast.
_SLOWEST = 16_000_000
_ASSUMED_CLOCK = 100_000_000
_UNKNOWN = "not stated: from no wait states to one for every 16 MHz, for each 4 bytes, without prefetch and cache"


def _bounds(value: object) -> object:
    """Return (least, most) for `5` or `[20, 40]`."""
    numbers = tuple(value) if isinstance(value, list | tuple) else (value, value)
    if len(numbers) != 2 or any(isinstance(one, bool) or not isinstance(one, int) for one in numbers):
        raise ValueError("wait states are a number, or [least, most]")
    if not 0 <= numbers[0] <= numbers[1] <= _LIMIT:
        raise ValueError(f"wait states must rise, from 0 to at most {_LIMIT}")
    return numbers


def _names(value: object) -> object:
    return [value] if isinstance(value, str) else value


class Flash(StrictModel):
    """`flash:` of a board.

    region             region of the board's memory, or a list, if it is mapped twice
    wait_states        cycles that a read delays the core, or [least, most]; 0: the memory answers at once
    line               bytes of a read
    prefetch           whether the next line of instructions is read in advance
    instruction_lines  lines of the instruction cache; 0: no cache
    data_lines         the same for constants
    cache_lines        lines of one cache for both, instead of these two
    ways               lines of each set of a cache, the least recently used replaced; 0: one set
    source             source of these figures
    """

    region: Annotated[tuple[str, ...], BeforeValidator(_names), Field(min_length=1, max_length=WINDOWS)]
    wait_states: Annotated[tuple[int, int], BeforeValidator(_bounds)]
    line: int = Field(default=4, ge=4, le=256, multiple_of=4)
    prefetch: bool = False
    instruction_lines: int = Field(default=0, ge=0, le=_MOST_LINES)
    data_lines: int = Field(default=0, ge=0, le=_MOST_LINES)
    cache_lines: int = Field(default=0, ge=0, le=_MOST_LINES)
    ways: int = Field(default=0, ge=0, le=_MOST_LINES)
    source: str = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Flash:
        if self.is_range and self.prefetch:
            raise mistake("with `prefetch`, wait_states is one number", "wait_states", beside=("prefetch",))
        for name in ("instruction_lines", "data_lines"):
            lines = getattr(self, name)
            if lines and self.cache_lines:
                raise mistake("cache_lines is one cache for instructions and data", name, beside=("cache_lines",))
        for name in ("instruction_lines", "data_lines", "cache_lines"):
            if self.ways and getattr(self, name) % self.ways:
                raise mistake(f"{getattr(self, name)} lines do not make sets of {self.ways}", name, beside=("ways",))
        return self

    @property
    def is_range(self) -> bool:
        """True if the wait states are not known exactly, so that times are ranges."""
        return self.wait_states[0] < self.wait_states[1]

    @property
    def description(self) -> str:
        """Return the description of a flash, for reports.

        `5 wait states in rom, lines of 16 bytes, the next prefetched, 64 of instructions and 8 of data cached`
        """
        least, most = self.wait_states
        if not most:
            return "memory without wait states"
        caches = {"instructions": self.instruction_lines, "data": self.data_lines, "both": self.cache_lines}
        kept = [f"{count} of {what}" for what, count in caches.items() if count]
        states = f"{least} to {most} (not stated)" if self.source == _UNKNOWN else f"{least} to {most}"
        parts = [f"{states if self.is_range else most} wait states in {' and '.join(self.region)}"]
        parts += [f"lines of {self.line} bytes", *(["the next prefetched"] if self.prefetch else [])]
        sets = f" in sets of {self.ways}" if kept and self.ways else ""
        return ", ".join([*parts, f"{' and '.join(kept)} cached{sets}" if kept else "no cache"])


def unknown_flash(memory: Memory, clock: int | None) -> Flash | None:
    """Return the bounds for a board that states no `flash:`; None if its code is in RAM.

    clock  Hz; 100 MHz is assumed without it
    """
    if memory.region_of("code").is_written:
        return None
    windows = [name for name, region in memory.regions.items() if not region.is_written][:WINDOWS]
    most = max(1, -(-(clock or _ASSUMED_CLOCK) // _SLOWEST) - 1)
    fields: dict[str, Any] = {"region": windows, "wait_states": (0, most), "source": _UNKNOWN}
    return Flash(**fields)
