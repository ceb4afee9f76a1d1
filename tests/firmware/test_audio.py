"""Recordings through all stages: WAV files and label tracks in, figures of detections out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from stages.ir.models.spec import FileModel
from tests.support.emitted import target_named
from tests.support.stages_run import run_stages
from tests.support.variables import Streaming
from tests.support.wav_files import write_wav

UNIT = (1 / 32768, 0)


def loudness() -> bytes:
    """Score of 10 ms: whether the mean of the last four steps, with three of them as state, is above 0.1."""
    b = Streaming()
    x = b.input("samples", (1, 160), "int16", *UNIT)
    mean = b.fully_connected(x, np.full((1, 160), 127, np.int8), weight_scale=1 / 127 / 160, out=UNIT, name="mean")
    kept = b.resource("means", np.zeros((1, 3), np.int16), UNIT)
    means = b.concatenation([b.read(kept, (1, 3), "int16", UNIT), mean], 1, name="all")
    b.assign(kept, b.strided_slice(means, (0, 1), (1, 4), name="new"))
    weights, bias = np.full((1, 4), 100, np.int8), np.array([-40 * 32768], np.int64)  # 400 * (mean - 0.1)
    total = b.fully_connected(means, weights, bias, weight_scale=1.0, out=(64 / 32768, 0), name="sum")
    b.output(b.emit("LOGISTIC", [total], (1, 1), UNIT, "score"))
    return b.build()


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
