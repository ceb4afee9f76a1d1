"""Detections against labels, and the load of the core, on small cases computed by hand."""

import csv
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.base import StageError
from stages.report.audio.events import Detection, Expected, beginnings, judge, quiet_seconds
from stages.report.audio.load import load, overload
from stages.report.audio.picture import audio_svg
from stages.report.audio.section import audio_section, read_series, write_table
from stages.report.audio.series import Series
from stages.report.audio.text import audio_lines
from stages.report.config import DetectionOptions

HOSTILE = "<b>&\x1b[31m.wav"


@pytest.mark.parametrize(
    ("decided", "hold", "steps"),
    [
        ("..11..", 0.0, [2]),
        ("1.1..1", 0.0, [0, 2, 5]),
        ("1.1..1", 0.2, [0, 5]),  # 0.2 s after the decision before is still the same detection, 0.3 s is not
        ("1.1..1", 0.3, [0]),
        ("......", 0.5, []),
    ],
)
def test_a_detection_begins_after_a_pause(decided: str, hold: float, steps: list[int]) -> None:
    times = np.arange(1, 7) / 10
    assert beginnings(np.array([letter == "1" for letter in decided]), times, hold).tolist() == steps


def test_detections_are_judged_by_the_labels_that_they_are_near() -> None:
    expected = [Expected(0, 1.0, 1.5), Expected(1, 3.0, 3.4), Expected(0, 5.0, 5.5)]
    detections = [
        Detection(keyword, time) for keyword, time in ((0, 0.9), (0, 1.4), (0, 2.0), (0, 2.1), (0, 3.2), (1, 3.9))
    ]
    judge(detections, expected, 0.5)
    assert [detection.verdict for detection in detections] == [
        *("false accept", "hit", "repeated", "false accept", "confused", "hit")
    ]
    assert [label.detected for label in expected] == [1.4, 3.9, None]
    # 10 s without 1.0 to 2.0, 3.0 to 3.9, 5.0 to 6.0; overlapping labels count once, and none beyond the end.
    assert quiet_seconds(10, expected, 0.5) == pytest.approx(7.1)
    assert quiet_seconds(10, [*expected, Expected(0, 1.2, 1.6), Expected(1, 9.8, 9.9)], 0.5) == pytest.approx(6.8)
    assert quiet_seconds(10, [Expected(0, 0.0, 10.0, whole=True)], 0.5) == 0


def artifacts(
    folder: Path,
    files: dict[str, tuple[list[list[int]], list[Any]]],
    outputs: list[dict[str, Any]],
    labelled: bool = True,
) -> dict[str, Path]:
    """Artifacts of a network that takes 10 samples of 100 Hz in steps of 5: outputs of each step, and labels."""
    described, rows, first = [], [], 0
    for name, (steps, labels) in files.items():
        spans = [dict(zip(("name", "start", "end"), label, strict=True)) for label in labels]
        described.append({"name": name, "first": first, "steps": len(steps), "labels": spans})
        rows += steps
        first += len(steps)
    ports = [{"name": "x", "dtype": "int16", "shape": [1, 10], "bytes": 20}]
    audio = {"sample_rate": 100, "step": 5, "window": 10, "labelled": labelled, "files": described}
    model = {"name": "net", "inputs": ports, "outputs": outputs, "layers": [], "traces": []}
    made = {kind: folder / kind for kind in ("import", "emit", "simulate")}
    for path in made.values():
        path.mkdir()
    (made["import"] / "import.json").write_text("{}")
    (made["emit"] / "model.json").write_text(json.dumps(model))
    (made["simulate"] / "inputs.json").write_text(
        json.dumps({"names": [""] * len(rows), "labels": None, "audio": audio})
    )
    samples = np.concatenate([np.arange(at, at + 10) for at in range(0, 5 * len(rows), 5)]).astype(np.int16)
    (made["simulate"] / "inputs.bin").write_bytes(bytes(24) + samples.tobytes())
    (made["simulate"] / "outputs.bin").write_bytes(np.array(rows, np.int8).tobytes())
    return made


SCORE = {"name": "score", "dtype": "int8", "shape": [1, 1], "bytes": 1, "scale": 0.01, "zero_point": -28}
TWO = {**SCORE, "name": "classes", "shape": [1, 2], "bytes": 2}
FLAG = {"name": "net/detected", "dtype": "int8", "shape": [1, 1], "bytes": 1}
FEATURES = {"name": "features", "dtype": "int8", "shape": [1, 40], "bytes": 40}
# 0.9 and 0.1, of 20 steps: they end at 0.10, 0.15, ... 1.05 s.
ON, OFF = 62, -18


def read(folder: Path, *arguments: Any, classes: tuple[str, ...] = (), labelled: bool = True) -> Series:
    series = read_series(artifacts(folder, *arguments, labelled), classes)
    assert series is not None
    return series


def test_figures_of_a_score(tmp_path: Path) -> None:
    first = [[ON if at in (4, 5, 6, 19) else OFF] for at in range(20)]
    files: Any = {"a.wav": (first, [("yes", 0.2, 0.3), ("yes", 0.5, 0.6)]), HOSTILE: ([[ON]] + [[OFF]] * 19, [])}
    series = read(tmp_path, files, [SCORE])
    section = audio_section(series, DetectionOptions(hold=0, margin=0.1), ())
    (keyword,) = section["keywords"]
    # Step 4 ends at 0.3 s: a hit. The second label is missed. Step 19 and step 0 of the other file are false accepts.
    counts = ("labels", "detected", "missed", "false_accepts", "repeated")
    assert [keyword[key] for key in ("name", *counts)] == ["yes", 2, 1, 1, 2, 0]
    assert keyword["after_start"]["mean"] == pytest.approx(0.1)
    assert keyword["after_end"]["mean"] == pytest.approx(0.0)
    # 1.05 s twice, without 0.2 to 0.4 and 0.5 to 0.7.
    assert section["quiet_seconds"] == pytest.approx(1.7)
    assert section["false_accepts_per_hour"] == pytest.approx(2 * 3600 / 1.7)
    lines = dict(audio_lines({**section, "load": None}))
    assert lines["keyword"] == "yes: 1 of 2 detected, 0.10 s after the start (0.10 s at most); 2 false accepts"
    assert lines["false accepts"] == "2 in 1.7 s: 4,235 per hour"
    svg = audio_svg(series, section)
    ET.fromstring(svg)
    assert svg.count('class="bad"') == 2
    assert svg.count('class="label missed"') == 1
    assert "\x1b" not in svg
    write_table(tmp_path / "audio.csv", series, section["classes"])
    with (tmp_path / "audio.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[:3] == [["file", "time", "yes"], ["a.wav", "0.1", "0.1"], ["a.wav", "0.15", "0.1"]]
    assert [row[1] for row in rows if row[0] == "a.wav" and row[2] == "0.9"] == ["0.3", "0.35", "0.4", "1.05"]
    assert np.array_equal(series.samples(series.recordings[0]), np.arange(105))


def test_recordings_without_the_word_have_a_rate(tmp_path: Path) -> None:
    series = read(tmp_path, {"room.wav": ([[ON]] + [[OFF]] * 18 + [[ON]], [])}, [SCORE])
    lines = dict(audio_lines({**audio_section(series, DetectionOptions(), ("yes",)), "load": None}))
    assert lines["keyword"] == "yes: never spoken; 2 false accepts"
    assert lines["false accepts"] == "2 in 1.05 s: 6,857 per hour"


def test_the_network_s_own_decision_replaces_the_threshold(tmp_path: Path) -> None:
    steps = [[ON, OFF, 0], [ON, OFF, 1], [OFF, ON, 1], [OFF, OFF, 0]]
    files: Any = {"a.wav": (steps, [("no", None, None)])}
    series = read(tmp_path, files, [TWO, FLAG], classes=("yes", "no"))
    section = audio_section(series, DetectionOptions(hold=0), ("yes", "no"))
    assert (section["threshold"], section["score"], section["decision"]) == (None, "classes", "net/detected")
    # Only `no` is labelled, for the whole file: it is found, without a delay, and no audio is without a keyword.
    (keyword,) = section["keywords"]
    assert (keyword["name"], keyword["detected"], keyword["after_start"]) == ("no", 1, None)
    assert section["false_accepts_per_hour"] is None
    both = audio_section(series, DetectionOptions(hold=0, keywords=("yes", "no")), ("yes", "no"))
    assert [(one["name"], one["detected"], one["confused"]) for one in both["keywords"]] == [
        ("yes", 0, 1),
        ("no", 1, 0),
    ]
    with pytest.raises(StageError, match="'on' is not a class of the network's score: yes, no"):
        audio_section(series, DetectionOptions(keywords=("on",)), ("yes", "no"))


THRESHOLD = (
    "report.detection.threshold 0.9 has no effect: net/detected decides. "
    "Set the threshold of the chain's smooth, or remove this one"
)


@pytest.mark.parametrize(
    ("skip", "false_accepts", "labels", "quiet"),
    [(0, 2, 2, 1.05 - 0.15), (0.05, 2, 2, 1 - 0.12), (0.1, 1, 1, 0.95 - 0.1), (2, 0, 0, 0)],
)
def test_the_start_of_a_recording_is_skipped(
    tmp_path: Path, skip: float, false_accepts: int, labels: int, quiet: float
) -> None:
    """A detection that begins in the skipped time does not count again at its end."""
    steps = [[ON if at in (0, 1, 2, 10, 19) else OFF] for at in range(20)]  # they begin at 0.1, 0.6 and 1.05 s
    files: Any = {"a.wav": (steps, [("yes", 0.02, 0.02), ("yes", 0.55, 0.6)])}
    section = audio_section(read(tmp_path, files, [SCORE]), DetectionOptions(hold=0, margin=0.05, skip=skip), ())
    (keyword,) = section["keywords"]
    assert (keyword["false_accepts"], keyword["labels"]) == (false_accepts, labels)
    assert section["quiet_seconds"] == pytest.approx(quiet)
    assert ("without the first" in dict(audio_lines({**section, "load": None}))["audio"]) == bool(skip)


OTHER = "labels of 'banana' name none of the classes {}: they count as audio without keyword"


@pytest.mark.parametrize(
    ("output", "classes", "keywords", "warnings"),
    [
        (SCORE, ("yes",), (), [OTHER.format("yes")]),
        (SCORE, (), ("yes",), [OTHER.format("yes")]),
        (TWO, ("yes", "no"), (), [OTHER.format("yes, no")]),
        (TWO, ("yes", "no"), ("yes",), [OTHER.format("yes, no")]),
        (TWO, ("yes", "banana"), ("yes",), []),
    ],
)
def test_labels_of_other_words_are_audio_without_keyword(
    tmp_path: Path, output: Any, classes: Any, keywords: Any, warnings: list[str]
) -> None:
    off = [OFF] * output["bytes"]
    steps = [[ON, *off[1:]] if at in (4, 14) else off for at in range(20)]  # they end at 0.3 and 0.8 s
    series = read(tmp_path, {"a.wav": (steps, [("yes", 0.2, 0.3), ("banana", 0.7, 0.9)])}, [output], classes=classes)
    section = audio_section(series, DetectionOptions(hold=0, margin=0.1, keywords=keywords), classes)
    (keyword,) = section["keywords"]
    counts = ("labels", "detected", "false_accepts", "confused")
    assert [keyword[key] for key in ("name", *counts)] == ["yes", 1, 1, 1, 0]
    assert section["quiet_seconds"] == pytest.approx(1.05 - 0.2)
    assert section["warnings"] == warnings


def test_doubts_about_labels_and_options(tmp_path: Path) -> None:
    steps = [[OFF, OFF, 1]] * 3
    labels = [("Yes", None, None), ("no", None, None)]
    series = read(tmp_path, {"a.wav": (steps, labels)}, [TWO, FLAG], classes=("yes", "no"))
    section = audio_section(series, DetectionOptions(threshold=0.9), ("yes", "no"))
    assert section["warnings"] == [
        "labels of 'Yes' name none of the classes yes, no: they count as audio without keyword; did you mean 'yes'?",
        THRESHOLD,
    ]
    with pytest.raises(StageError, match="'Yes' is not a class of the network's score: 0, 1"):
        audio_section(series, DetectionOptions(), ())
    (tmp_path / "one").mkdir()
    several = audio_section(read(tmp_path / "one", {"a.wav": ([[OFF]], labels)}, [SCORE]), DetectionOptions(), ())
    assert several["warnings"] == [
        "labels of 'Yes', 'no' all count as the keyword; `report: {detection: {keywords: [...]}}` selects some"
    ]
    (tmp_path / "none").mkdir()
    unlabelled = read(tmp_path / "none", {"a.wav": ([[OFF, OFF]], [])}, [TWO], labelled=False)
    lines = dict(audio_lines({**audio_section(unlabelled, DetectionOptions(), ()), "load": None}))
    assert lines["keyword"].startswith("none of the 2 classes is chosen: `report: {classes: [...], detection:")


POWER = {"current_ma": 10.0, "supply_v": 3.0, "clock": 100_000_000, "source": "made up"}
BOARD = {"clock": 100_000_000, "power": POWER}


@pytest.mark.parametrize(
    ("board", "estimate", "clock", "figures"),
    [
        # 1.5 M instructions at 2 cycles, of 20 ms at 100 MHz: 1.5 duty, 2.0 at most.
        (BOARD, {"total": 200, "is_range": False}, None, ("estimated cycles", 3_000_000, 1.5, 2.0, 15.0, 45.0)),
        (BOARD, {"total": 100, "most": 200, "is_range": True}, None,
         ("estimated cycles", 3_000_000, 1.5, 2.0, 15.0, 45.0)),
        ({"clock": 100_000_000}, None, None, ("instructions", 1_500_000, 0.75, 1.0, None, None)),
        (None, None, 200_000_000, ("instructions", 1_500_000, 0.375, 0.5, None, None)),
        (None, None, None, ("instructions", 1_500_000, None, None, None, None)),
    ],
)  # fmt: skip
def test_duty_cycle_and_charge(board: Any, estimate: Any, clock: int | None, figures: Any) -> None:
    report = {"instructions": {"total": 100}, "estimated_cycles": estimate, "board": board}
    found = load(report, [1_000_000, 2_000_000], 0.02, clock)
    assert found is not None
    keys = ("unit", "step", "duty", "longest", "mah_per_hour", "mwh_per_hour")
    assert tuple(found[key] for key in keys) == figures
    assert bool(overload(found, 0.02)) == (figures[3] == 2.0)
    assert load({**report, "instructions": {"total": None}}, [0], 0.02) is None
