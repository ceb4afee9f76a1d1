"""A stage that runs again and leaves the same bytes spares those that follow; one that leaves others does not."""

from __future__ import annotations

import json
import re

import pytest

from pipeline.runs.session import Session
from stages.base import StageError
from tests.unit.pipeline.conftest import RECIPE, Doit, FakeProject


@pytest.fixture
def ran(project: FakeProject) -> FakeProject:
    """The fake project after a run of it."""
    project.run()
    project.ran()
    return project


def test_a_way_back_through_the_same_bytes_runs_nothing(ran: FakeProject) -> None:
    """compile's artifact was made from emit's of another key: they have the same bytes."""
    ran.edit("code/emit.py", "code", "better code")
    ran.run()
    ran.run(set="stages.compile.opt=O3")
    ran.edit("code/emit.py", "better code", "code")
    ran.ran()
    assert all(stage.cached for stage in ran.run(set="stages.compile.opt=O3").stages)
    assert ran.ran() == []


def test_a_stage_that_fails_has_left_nothing_for_the_next(ran: FakeProject) -> None:
    """The artifact of the last run that ended well is not taken for that of this one."""
    with pytest.raises(StageError, match="unlucky"):
        ran.run(set="stages.emit.unroll=13")
    with ran.workspace() as workspace:
        session = Session(workspace, workspace.plan("demo", {"set": "stages.emit.unroll=13"}))
        done = [action.kind for action in session.plan if session.is_done(action)]
        session.close()
    assert done == ["import"]


def test_tasks_and_their_lines(ran: FakeProject, doit: Doit) -> None:
    ran.edit("code/emit.py", "code", "better code")
    code, out, _ = doit("run", "recipe=demo")
    lines = [re.sub(r" +[\d.]+ s +[0-9a-f]{12}", "", line) for line in out.splitlines() if line.startswith("  ")]
    assert (code, [" ".join(line.split()) for line in lines]) == (
        0,
        ["import cached", "emit ran same bytes as before", "compile cached", "report cached"],
    )
    log = (ran.root / "build/demo/rv64-rvp/log.txt").read_text()
    assert re.search(r"emit +\| done in [\d.]+ s, same bytes as before\n", log)
    report = json.loads((ran.root / "build/demo/rv64-rvp/report.json").read_text())
    assert [stage["cached"] for stage in report["stages"]] == [True, False, True, True]
    ran.ran()
    # Everything anew is everything.
    assert doit("run", "-a", "recipe=demo")[0] == 0
    assert ran.ran() == ["import", "emit", "compile", "report"]


def test_sub_recipes_that_come_to_the_same_share_what_follows(project: FakeProject, doit: Doit) -> None:
    """Two models of the same bytes: import has two keys, and all that follows one."""
    project.write("again.txt", "weights\n")
    project.recipe(RECIPE.replace("model: {file: model.txt}", "matrix: {model: [model.txt, again.txt]}"))
    assert doit("run", "recipe=demo")[0] == 0
    assert sorted(project.ran()) == ["compile", "emit", "import", "import", "report"]
    rows = json.loads((project.root / "build/demo/matrix.json").read_text())["rows"]
    assert [row["error"] for row in rows] == ["", ""]
    # Made once by the process, though two recipes have it made anew.
    assert doit("run", "-a", "recipe=demo")[0] == 0
    assert sorted(project.ran()) == ["compile", "emit", "import", "import", "report"]
