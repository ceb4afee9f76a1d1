"""Options of the report stage."""

from typing import Literal

from pydantic import Field

from stages.backends.targets.frequency import Frequency
from stages.base import StageConfig
from stages.support.options.strict_model import StrictModel


class DetectionOptions(StrictModel):
    """How scores over time become detections, for runs with WAV files.

    threshold  score from which a keyword is detected, if the network has no output named `...detected`; by default 0.5
    keywords   classes to detect; by default the only one, or those that labels name
    hold       seconds: a decision that follows another so soon belongs to the same detection
    margin     seconds: a detection so long after a label's end still belongs to the label
    skip       seconds: detections that begin so early in a recording, and labels that end before, do not count
    """

    threshold: float | None = None
    keywords: tuple[str, ...] = ()
    hold: float = Field(default=0.5, ge=0, le=3600)
    margin: float = Field(default=0.75, ge=0, le=3600)
    skip: float = Field(default=0, ge=0, le=3600)


class ReportConfig(StageConfig):
    """Options of the report stage.

    `classes` are names for the elements of the network's first output, in order. report.html shows them instead of
    numbers. `clock` (Hz, or such as 100M) turns a core's estimated cycles into milliseconds; a board has its own.
    `detection` has the rules for detections in WAV files.
    """

    kind: Literal["report"] = "report"
    classes: tuple[str, ...] = ()
    clock: Frequency | None = Field(
        default=None, description="clock of a core in Hz, such as 100M: estimated cycles are shown in milliseconds"
    )
    detection: DetectionOptions = DetectionOptions()
