"""Detections in a recording, and their comparison with its labels.

    label of yes          |=========|  margin
    decision         1    .    .  1111111   1    .     1
    detection                     ^hit      ^repeated  ^false accept

A detection begins with a step whose decision is 1, at the end of its samples: then the device knows it. A decision that
follows another after `hold` seconds or less belongs to the same detection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

HIT, REPEATED, CONFUSED, FALSE = "hit", "repeated", "confused", "false accept"


@dataclass
class Expected:
    """A label of a keyword from `start` to `end` in seconds.

    detected: time of its detection, None if missed. whole: it is for the whole recording, so that times say nothing
    about a delay. `name` is the label's text.
    """

    keyword: int
    start: float
    end: float
    whole: bool = False
    name: str = ""
    detected: float | None = None


@dataclass
class Detection:
    """A detection of a keyword at a time in seconds; `verdict` is '' without labels."""

    keyword: int
    time: float
    score: float | None = None
    verdict: str = ""


def beginnings(decided: npt.NDArray[np.bool_], times: npt.NDArray[np.float64], hold: float) -> npt.NDArray[Any]:
    """Return the steps in which detections begin. `times` are the ends of the steps."""
    steps = np.flatnonzero(decided)
    if not len(steps):
        return steps
    is_new = (np.diff(steps) > 1) & (np.diff(times[steps]) > hold)
    begins: npt.NDArray[Any] = steps[np.concatenate([[True], is_new])]
    return begins


def judge(detections: Sequence[Detection], expected: Sequence[Expected], margin: float) -> None:
    """Set the verdicts of the detections, and when each label was detected.

    Both are sorted by time.
    A detection belongs to a label from its start until `margin` seconds after its end.

    hit           the first detection of a label's keyword
    repeated      a later one
    confused      only a label of another keyword is there
    false accept  no label of a keyword is there
    """
    for detection in detections:
        near = [label for label in expected if label.start <= detection.time <= label.end + margin]
        same = [label for label in near if label.keyword == detection.keyword]
        waiting = [label for label in same if label.detected is None]
        if waiting:
            waiting[0].detected = detection.time
        detection.verdict = HIT if waiting else REPEATED if same else CONFUSED if near else FALSE


def quiet_seconds(seconds: float, expected: Sequence[Expected], margin: float, skip: float = 0.0) -> float:
    """Return a recording's length after `skip` seconds, outside of labels and margins."""
    quiet, end = seconds - min(skip, seconds), skip
    for label in sorted(expected, key=lambda label: label.start):
        last = min(label.end + margin, seconds)
        quiet -= max(0.0, last - max(end, min(label.start, seconds)))
        end = max(end, last)
    return max(quiet, 0.0)
