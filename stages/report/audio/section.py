"""`audio` of report.json: a network's detections in recordings against their labels."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages.report.audio.events import CONFUSED, FALSE, HIT, REPEATED, Detection, Expected, beginnings, judge
from stages.report.audio.events import quiet_seconds as quiet_length
from stages.report.audio.keywords import Keywords
from stages.report.audio.series import Recording, Series
from stages.report.config import DetectionOptions
from stages.support.messages import escape

TABLE = "audio.csv"
PICTURE = "audio.svg"
DEFAULT_THRESHOLD = 0.5


def read_series(artifacts: Mapping[str, Path], classes: Sequence[str]) -> Series | None:
    """Return the steps of the recordings; None if the run had no WAV file.

    `classes` name the elements of a score.
    """
    if "simulate" not in artifacts or "emit" not in artifacts:
        return None
    path = Path(artifacts["simulate"]) / "inputs.json"
    facts = json.loads(path.read_text()).get("audio") if path.exists() else None
    if facts is None:
        return None
    parts = json.loads((Path(artifacts["import"]) / "import.json").read_text()).get("parts", ())
    first_part = parts[0]["name"] if len(parts) > 1 else ""
    return Series(Path(artifacts["emit"]), Path(artifacts["simulate"]), facts, classes, first_part)


def audio_section(series: Series, options: DetectionOptions, classes: Sequence[str]) -> dict[str, Any]:
    """Return `audio` of report.json, without `load`.

    Raises StageError for keywords and labels that are not classes.
    """
    keywords = Keywords(series, options, classes)
    files, totals, quiet = [], {index: _Total() for index in keywords.indices}, 0.0
    for recording in series.recordings:
        labels = keywords.expected(recording, series.seconds(recording))
        expected = [label for label in labels if not options.skip or label.end + options.margin > options.skip]
        detections = list(_detections(series, recording, keywords.indices, options))
        if series.labelled:
            judge(detections, expected, options.margin)
            quiet += quiet_length(series.seconds(recording), expected, options.margin, options.skip)
        for index, total in totals.items():
            total.add(index, detections, expected)
        files.append(_file(series, recording, keywords, detections, expected))
    false = sum(total.verdicts[FALSE] for total in totals.values())
    return {
        "sample_rate": series.rate,
        "step_seconds": series.step / series.rate,
        "window_seconds": series.window / series.rate,
        "seconds": sum(map(series.seconds, series.recordings)),
        "steps": sum(recording.steps for recording in series.recordings),
        "score": series.score or None,
        "decision": series.decision or None,
        "features": series.features or None,
        "threshold": None if series.decision else _threshold(options),
        "skip": options.skip,
        "classes": keywords.names,
        "labelled": series.labelled,
        "keywords": [total.described(keywords.names[index]) for index, total in totals.items()],
        "false_accepts": false if series.labelled else None,
        "quiet_seconds": quiet if series.labelled else None,
        "false_accepts_per_hour": 3600 * false / quiet if series.labelled and quiet else None,
        "files": files,
        "warnings": [*keywords.warnings, *_unused(series, options)],
    }


def _threshold(options: DetectionOptions) -> float:
    return DEFAULT_THRESHOLD if options.threshold is None else options.threshold


def _unused(series: Series, options: DetectionOptions) -> Iterator[str]:
    """Yield a warning if the recipe sets a threshold, but the network decides."""
    if series.decision and options.threshold is not None:
        yield (
            f"report.detection.threshold {options.threshold:g} has no effect: {escape.name(series.decision)} decides. "
            "Set the threshold of the chain's smooth, or remove this one"
        )


def write_table(path: Path, series: Series, names: Sequence[str]) -> None:
    """Write a line for each step: file, seconds, scores, the network's own decisions."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        for number, recording in enumerate(series.recordings):
            scores, decisions = series.scores(recording), series.decisions(recording)
            columns = [array for array in (scores, decisions) if array is not None]
            if not number:
                own = [] if decisions is None else _named(names, decisions.shape[1], "detected")
                writer.writerow(["file", "time", *([] if scores is None else names), *own])
            for step, time in enumerate(series.times(recording)):
                values = (f"{float(value):.6g}" for array in columns for value in array[step])
                writer.writerow([recording.name, f"{time:.6g}", *values])


def _named(names: Sequence[str], count: int, what: str) -> list[str]:
    return [f"{name} {what}" for name in names] if count == len(names) else [what] * count


class _Total:
    """Figures of a keyword over all recordings."""

    def __init__(self) -> None:
        self.verdicts = dict.fromkeys((HIT, REPEATED, CONFUSED, FALSE, ""), 0)
        self.labels = 0
        self.after_start: list[float] = []
        self.after_end: list[float] = []

    def add(self, index: int, detections: Sequence[Detection], expected: Sequence[Expected]) -> None:
        """Add a recording."""
        for detection in detections:
            self.verdicts[detection.verdict] += detection.keyword == index
        for label in expected:
            if label.keyword == index:
                self.labels += 1
                if label.detected is not None and not label.whole:
                    self.after_start.append(label.detected - label.start)
                    self.after_end.append(label.detected - label.end)

    def described(self, name: str) -> dict[str, Any]:
        """Return the entry of report.json."""
        delays = {"after_start": self.after_start, "after_end": self.after_end}
        return {
            "name": name,
            "detections": sum(self.verdicts.values()),
            "labels": self.labels,
            "detected": self.verdicts[HIT],
            "missed": self.labels - self.verdicts[HIT],
            "repeated": self.verdicts[REPEATED],
            "confused": self.verdicts[CONFUSED],
            "false_accepts": self.verdicts[FALSE],
            **{
                key: {"mean": sum(times) / len(times), "most": max(times)} if times else None
                for key, times in delays.items()
            },
        }


def _detections(
    series: Series, recording: Recording, keywords: Sequence[int], options: DetectionOptions
) -> Iterator[Detection]:
    """Yield the detections of a recording, by time."""
    scores, decided, times = series.scores(recording), series.decisions(recording), series.times(recording)
    if decided is None:
        if scores is None:
            return
        decided = scores >= _threshold(options)
    if decided.shape[1] == 1 and len(keywords) > 1 and scores is not None:  # one decision for all: of the highest score
        decided = decided & (np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, np.newaxis])
    begins = [
        (int(step), index) for index in keywords for step in beginnings(_column(decided, index), times, options.hold)
    ]
    for step, index in sorted(begins):
        if times[step] <= options.skip:
            continue
        score = None if scores is None else float(_column(scores, index)[step])
        yield Detection(index, float(times[step]), score)


def _column(values: np.ndarray[Any, Any], index: int) -> np.ndarray[Any, Any]:
    """Return the column of a class; of an output of one element, that element's."""
    return values[:, index if values.shape[1] > 1 else 0]


def _file(
    series: Series,
    recording: Recording,
    keywords: Keywords,
    detections: Sequence[Detection],
    expected: Sequence[Expected],
) -> dict[str, Any]:
    names = keywords.names
    return {
        "name": recording.name,
        "seconds": series.seconds(recording),
        "first": recording.first,
        "steps": recording.steps,
        "labels": [
            {"class": label.name, "start": label.start, "end": label.end, "detected": label.detected}
            for label in expected
        ],
        "detections": [
            {"class": names[one.keyword], "time": one.time, "score": one.score, "verdict": one.verdict}
            for one in detections
        ],
    }
