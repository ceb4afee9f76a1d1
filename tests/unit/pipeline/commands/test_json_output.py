"""With `--json` standard output is one JSON value, of the commands that make or run something too."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from pipeline.commands.command import JSON
from pipeline.commands.dispatch import command_classes
from tests.support.plugged import write
from tests.support.processes import python

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
        words, store = (
            ("-P", "-m", "pipeline", *shlex.split(line), "--json"),
            {"FIRMLINE_STORE": str(tmp_path / "store")},
        )
        done = python(*words, cwd=tmp_path / folder, env=store, check=False)
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
