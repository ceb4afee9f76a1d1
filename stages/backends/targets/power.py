"""`power:` of a board: its current by data sheet, and the energy of an inference."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from stages.backends.targets.frequency import Frequency
from stages.support.options.strict_model import StrictModel, mistake

_Positive = Annotated[float, Field(gt=0, le=100_000)]


class Power(StrictModel):
    """`power:` of a board: typical current while the core computes, at `supply_v` volts.

    ua_per_mhz  µA per MHz, at any clock
    current_ma  mA at `clock`, if the data sheet states no current per MHz
    source      source of the figures, with their conditions
    """

    supply_v: Annotated[float, Field(gt=0, le=1_000)]
    ua_per_mhz: _Positive | None = None
    current_ma: _Positive | None = None
    clock: Frequency | None = None
    source: str = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Power:
        if (self.ua_per_mhz is None) == (self.current_ma is None):
            raise mistake("states either `ua_per_mhz`, or `current_ma` at `clock`")
        if (self.current_ma is None) != (self.clock is None):
            raise mistake("`current_ma` and `clock` belong together")
        return self

    @property
    def description(self) -> str:
        """Text: `52 µA/MHz at 3 V`, or `72 mA at 3.3 V and 180 MHz`."""
        if self.clock is None:
            return f"{self.ua_per_mhz:g} µA/MHz at {self.supply_v:g} V"
        return f"{self.current_ma:g} mA at {self.supply_v:g} V and {self.clock / 1e6:g} MHz"

    def milliamperes(self, clock: int) -> float:
        """Return the current in mA at a clock in Hz."""
        return self.current_ma or (self.ua_per_mhz or 0.0) * clock / 1e9

    def microjoules(self, milliseconds: float, clock: int) -> float:
        """Return the energy in µJ of a time in ms at a clock in Hz: power times time."""
        return self.milliamperes(clock) * self.supply_v * milliseconds
