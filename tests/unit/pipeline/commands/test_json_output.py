"""With `--json` standard output is one JSON value, of the commands that make or run something too."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.commands.command import JSON
from pipeline.commands.dispatch import command_classes
from stages.support.system.installation import INSTALLATION as ROOT
from tests.support.plugged import write

# What prints a format of its own.
_WITHOUT = {"matrix-json", "schema", "completion", "watch"}


def test_which_commands_have_it() -> None:
    commands = command_classes().to_dict()
    assert {name for name, command in commands.items() if command.name != name} == set()
    assert {name for name, command in commands.items() if JSON not in command.cmd_options} == _WITHOUT | {"bench"}


@pytest.fixture
def shell(tmp_path: Path) -> Any:
    """Runs a command line; returns its exit code and the value that it prints."""

    def run(line: str, folder: str = "") -> tuple[int, Any]:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pipeline", *shlex.split(line), "--json"],
            cwd=tmp_path / folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "FIRMLINE_STORE": str(tmp_path / "store")},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, json.loads(done.stdout)

    return run


STAGE = """
from stages.base import Job, Stage, StageConfig

class Told(Stage[StageConfig]):
    kind = "told"
    config = StageConfig
    consumes = ("import",)

    def run(self, job: Job) -> None:
        print("what a plug-in prints")
        (job.out / "told.txt").write_text("told")

STAGE = Told()
"""
RECIPE = "schema: 1\ntarget: host\nmodel: {op: relu, shape: [6]}\nstages: {told: {after: import}}\n"


def test_what_a_plug_in_prints_is_not_among_it(shell: Any, tmp_path: Path) -> None:
    write(tmp_path, "pipeline.yaml", "schema: 1\n")
    write(tmp_path, "recipes/act.yaml", RECIPE)
    write(tmp_path, "plugins/stages/told.py", STAGE)
    code, (ran,) = shell("run act:told")
    assert (code, [stage["kind"] for stage in ran["stages"]][-1]) == (0, "told")


def test_what_makes_and_what_runs(shell: Any, tmp_path: Path) -> None:
    code, created = shell("init mine target=host")
    assert code == 0 and created["folder"] == "mine" and "recipes/mine.yaml" in created["files"]
    assert shell("new recipe act 'layer={op: relu, shape: [6]}' target=host", "mine") == (
        0,
        {"recipe": "act", "file": "recipes/act.yaml"},
    )
    code, (planned,) = shell("run act dry_run=1", "mine")
    assert (code, planned["recipe"], planned["pending"]) == (3, "act", True)
    code, (ran,) = shell("run act", "mine")
    assert (code, ran["recipe"], ran["target"]) == (0, "act", "host")
    assert json.loads((tmp_path / "mine" / ran["report"]).read_text())["verify"]["mismatches"] == 0
    assert ran["stages"][0]["kind"] == "import" and not any(stage["cached"] for stage in ran["stages"])
    code, (broken,) = shell("run act set=stages.simulate.instruction_limit=1,stages.simulate.timeout=0.000001", "mine")
    assert code == 1 and broken["report"] == "" and len(broken["stages"]) < len(ran["stages"])
    assert shell("gc --days 9", "mine") == (0, {"artifacts": 0, "bytes": 0})
