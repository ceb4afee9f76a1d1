"""What is noted of a recipe's last run, and that a damaged note is none."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pipeline.artifacts.last_runs import LastRuns

KEYS = {"import": "k1", "layout": "k2"}


@pytest.fixture
def runs(tmp_path: Path) -> LastRuns:
    return LastRuns(tmp_path / "runs")


def noted(folder: Path, target: str = "host") -> Path:
    return folder / "runs" / f"net@{target}.json"


def test_a_run_is_found_with_its_keys_overrides_and_time(tmp_path: Path, runs: LastRuns) -> None:
    runs.note("net", "host", KEYS, ["target=host"])
    os.utime(noted(tmp_path), (1000, 1000))
    last_run = runs.find("net", "host")
    assert last_run is not None
    assert (last_run.target, last_run.when, last_run.changes, last_run.keys) == ("host", 1000, ("target=host",), KEYS)
    assert runs.find("other", "host") is None


def test_without_one_on_the_target_the_newest_on_another_counts(tmp_path: Path, runs: LastRuns) -> None:
    for seconds, target in ((3000, "cortex-m4"), (5000, "rv64-rvp"), (4000, "aarch64")):
        runs.note("net", target, {"import": target})
        os.utime(noted(tmp_path, target), (seconds, seconds))
    runs.note("net/part", "host", {"import": "of another recipe"})
    last_run = runs.find("net", "host")
    assert last_run is not None and (last_run.target, last_run.keys) == ("rv64-rvp", {"import": "rv64-rvp"})
    noted(tmp_path, "rv64-rvp").write_text("{")
    last_run = runs.find("net", "host")
    assert last_run is not None and last_run.target == "aarch64"
    runs.note("net", "host", KEYS)
    os.utime(noted(tmp_path), (1, 1))
    last_run = runs.find("net", "host")
    assert last_run is not None and last_run.target == "host"


WHOLE = {"format": 1, "keys": KEYS, "changes": ["a=b"]}


@pytest.mark.parametrize(
    "content",
    [
        [WHOLE],
        {**WHOLE, "format": 2},
        {key: value for key, value in WHOLE.items() if key != "format"},
        {**WHOLE, "keys": ["import"]},
        {**WHOLE, "keys": {"import": 1}},
        {**WHOLE, "changes": "a=b"},
        {**WHOLE, "changes": [1]},
        {"format": 1, "changes": []},
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
    ],
    ids=lambda content: str(content)[:60],
)
def test_a_note_of_another_form_is_none(tmp_path: Path, runs: LastRuns, content: Any) -> None:
    path = noted(tmp_path)
    path.parent.mkdir()
    path.write_text(json.dumps(WHOLE))
    assert runs.find("net", "host") is not None
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    assert runs.find("net", "host") is None
    runs.note("net", "host", {"emit": "k9"})
    last_run = runs.find("net", "host")
    assert last_run is not None and last_run.keys == {"emit": "k9"}


def test_a_run_does_not_fail_for_its_note(tmp_path: Path, runs: LastRuns) -> None:
    (tmp_path / "runs").write_text("a file where the folder should be")
    runs.note("net", "host", KEYS)
    assert runs.find("net", "host") is None
