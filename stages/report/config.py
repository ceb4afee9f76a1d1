"""Options of the report stage."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stages.backends.targets.frequency import Frequency
from stages.base import StageConfig


class ReportConfig(StageConfig):
    """Options of the report stage.

    `classes` are names for the elements of the network's first output, in order. report.html shows them instead of
    numbers. `clock` (Hz, or such as 100M) turns a core's estimated cycles into milliseconds; a board has its own.
    """

    kind: Literal["report"] = "report"
    classes: tuple[str, ...] = ()
    clock: Frequency | None = Field(
        default=None, description="clock of a core in Hz, such as 100M: estimated cycles are shown in milliseconds"
    )
