"""Recordings through all stages: WAV files and label tracks in, figures of detections out."""

import json
from pathlib import Path

import numpy as np

from pipeline.api import run_recipe
from stages.ir.models.spec import FileModel
from tests.support.emitted import target_named
from tests.support.recordings import loudness, write_wav
from tests.support.stages_run import run_stages


def test_a_recording_from_samples_to_figures(tmp_path: Path) -> None:
    """State is reset before each file: the loud end of the first one is not heard in the second."""
    for name, loud in (("a b", (0.3, 0.6)), ("c", (0.9, 1.0)), ("d", ())):
        samples = np.zeros(16_000, np.int16)
        if loud:
            samples[round(16_000 * loud[0]) : round(16_000 * loud[1])] = 16_000
        write_wav(tmp_path / f"{name}.wav", samples)
    (tmp_path / "a b.txt").write_text("0.3\t0.6\tyes\n")
    (tmp_path / "model.tflite").write_bytes(loudness())
    inputs = {"random": 1, "steps": 3, "files": [str(tmp_path / "*.wav")], "labels": str(tmp_path / "*.txt")}
    configs = {"simulate": {"inputs": inputs}, "report": {"detection": {"margin": 0.1}}}
    model = FileModel(file=str(tmp_path / "model.tflite"))
    made = run_stages(model, target_named("host"), tmp_path / "run", until="report", configs=configs)
    report = json.loads((made["report"] / "report.json").read_text())
    assert (report["verify"]["inputs"], report["verify"]["mismatches"]) == (9 + 3 * 100, 0)
    audio = report["audio"]
    # One loud step of four is a mean of 0.122: detected at the end of the first loud one.
    times = [[(one["time"], one["verdict"]) for one in file["detections"]] for file in audio["files"]]
    assert times == [[(0.31, "hit")], [(0.91, "false accept")], []]
    assert (audio["quiet_seconds"], audio["load"]) == (3 - 0.4, None)
    assert "Recordings</h2>" in (made["report"] / "report.html").read_text()


def test_the_wake_word_from_samples_to_the_decision(tmp_path: Path) -> None:
    """The recipe's network is run for new frames only, and hears two of the three words; the third is too quiet."""
    made = run_recipe("wake_word", store=tmp_path / "store", build=tmp_path / "build")
    report = made.report
    assert report is not None
    assert (report["verify"]["mismatches"], report["verify"]["inputs"]) == (0, 233)
    assert all(name in report["verify"]["reference"] for name in ("LiteRT", "TFLM", "its formula"))
    assert [part["name"] for part in report["parts"]] == ["frontend", "word", "smooth"]
    assert sum(part["instructions"] for part in report["parts"]) == sum(row["instructions"] for row in report["layers"])
    verdicts = [found["verdict"] for file in report["audio"]["files"] for found in file["detections"]]
    assert verdicts == ["hit", "hit"]
