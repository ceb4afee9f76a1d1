"""What runs again and what does not, and what a failing, killed or concurrent run leaves."""

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pipeline.errors import PipelineError, StageCrashed, StageFailed
from pipeline.runs.session import Session
from stages.base import Job, StageError
from tests.support.processes import wait_until
from tests.unit.pipeline.conftest import RECIPE, Doit, FakeProject
from tests.unit.pipeline.fake_stages import FakeImport

ALL = ["import", "emit", "compile", "report"]


def test_a_b_a_runs_nothing_the_second_time(project: FakeProject) -> None:
    a = project.run()
    project.ran()
    b = project.run(set="stages.emit.unroll=8")
    assert project.ran() == ["emit", "compile", "report"]
    again = project.run()
    assert project.ran() == []
    assert again.artifacts == a.artifacts
    assert again.artifacts["emit"] != b.artifacts["emit"]
    assert (project.root / "build/demo/rv64-rvp/firmware.elf").read_text() == "O2 4 weights\n"


@pytest.mark.parametrize("kind", ALL)
def test_changed_code_runs_that_stage(project: FakeProject, kind: str) -> None:
    project.run()
    project.ran()
    project.edit(f"code/{kind}.py", "code", "better code")
    project.run()
    # It leaves the same bytes, so nothing that follows has to run.
    assert project.ran() == [kind]


def test_a_way_back_through_the_same_bytes_runs_nothing(project: FakeProject) -> None:
    """compile's artifact was made from emit's of another key: they have the same bytes."""
    project.run()
    project.edit("code/emit.py", "code", "better code")
    project.run()
    project.run(set="stages.compile.opt=O3")
    project.edit("code/emit.py", "better code", "code")
    project.ran()
    assert all(stage.cached for stage in project.run(set="stages.compile.opt=O3").stages)
    assert project.ran() == []


def test_a_stage_that_fails_has_left_nothing_for_the_next(project: FakeProject) -> None:
    """The artifact of the last run that ended well is not taken for that of this one."""
    project.run()
    with pytest.raises(StageError, match="unlucky"):
        project.run(set="stages.emit.unroll=13")
    with project.workspace() as workspace:
        session = Session(workspace, workspace.plan("demo", {"set": "stages.emit.unroll=13"}))
        done = [action.kind for action in session.plan if session.is_done(action)]
        session.close()
    assert done == ["import"]


def test_sub_recipes_that_come_to_the_same_share_what_follows(project: FakeProject, doit: Doit) -> None:
    """Two models of the same bytes: import has two keys, and all that follows one."""
    project.write("again.txt", "weights\n")
    project.recipe(RECIPE.replace("model: {file: model.txt}", "matrix: {model: [model.txt, again.txt]}"))
    # With -a each is made once by the process, though two recipes have it made anew.
    for words in (["run"], ["run", "-a"]):
        assert doit(*words, "recipe=demo")[0] == 0
        assert sorted(project.ran()) == ["compile", "emit", "import", "import", "report"]
    rows = json.loads((project.root / "build/demo/matrix.json").read_text())["rows"]
    assert [row["error"] for row in rows] == ["", ""]


def test_touching_files_and_writing_out_a_default_run_nothing(project: FakeProject) -> None:
    project.run()
    project.ran()
    for name in ("model.txt", "code/emit.py", "recipes/demo.yaml", "bin/fakecc"):
        os.utime(project.root / name)
    project.edit("recipes/demo.yaml", "unroll: 4", "unroll: 4, window: [1, 1]")
    project.run()
    assert project.ran() == []


@pytest.mark.parametrize("damage", ["alter keeping times", "delete", "add"])
def test_damaged_artifact_is_found_and_rebuilt(project: FakeProject, damage: str) -> None:
    first = project.run()
    # Old enough that the second run remembers the files' digests.
    time.sleep(0.06)
    project.run()
    project.ran()
    victim = first.artifacts["emit"] / "src" / "model.c"
    good, info = victim.read_bytes(), victim.stat()
    victim.chmod(0o644)
    if damage == "delete":
        victim.unlink()
    elif damage == "add":
        (victim.parent / "extra.c").write_text("int x;")
    else:
        with victim.open("r+b") as stream:
            stream.write(b"9")
        os.utime(victim, ns=(info.st_atime_ns, info.st_mtime_ns))
    project.run()
    assert project.ran() == ["emit"]
    assert victim.read_bytes() == good
    assert [path.name for path in victim.parent.iterdir() if path.name == "extra.c"] == []


def test_refused_input_keeps_what_is_finished(project: FakeProject) -> None:
    project.write("model.txt", "broken\n")
    with pytest.raises(StageFailed) as caught:
        project.run()
    assert str(caught.value) == "import: model.txt is corrupt\nget another"
    assert isinstance(caught.value, StageError)
    assert project.ran() == ["import"]
    assert list((project.store / "building").iterdir()) == []
    assert "failed: import: model.txt is corrupt" in (project.root / "build/demo/rv64-rvp/log.txt").read_text()


def test_a_crash_while_a_model_is_read_names_the_file(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: object, job: object) -> None:
        error = IndexError("tuple index out of range")
        error.add_note("in operator 0 (Pad) 'y'")
        raise error

    monkeypatch.setattr(type(project.registry["import"]), "run", run)
    with pytest.raises(StageCrashed) as caught:
        project.run()
    message = "import: cannot read model.txt: IndexError, in operator 0 (Pad) 'y': tuple index out of range"
    assert str(caught.value).splitlines()[0] == message
    assert "Traceback (most recent call last)" in (project.root / "build/demo/rv64-rvp/log.txt").read_text()


def test_kill_in_the_middle_loses_nothing_finished(project: FakeProject) -> None:
    with project.start("hang") as run:
        wait_until(lambda: list((project.store / "building").glob("*/files/src/model.c")) != [])
        run.send_signal(signal.SIGKILL)
    assert project.ran() == ["import", "emit"]
    leftovers = list((project.store / "building").iterdir())
    assert len(leftovers) == 1
    assert len(list((project.store / "artifacts").glob("*/*"))) == 1
    project.run()
    assert project.ran() == ["emit", "compile", "report"]
    assert list((project.store / "building").iterdir()) == []


def test_two_runs_side_by_side_share_the_work(project: FakeProject) -> None:
    with project.start("slow") as first, project.start("slow") as other:
        outputs = [json.loads(run.communicate(timeout=120)[0]) for run in (first, other)]
    assert [first.returncode, other.returncode] == [0, 0]
    # Each stage ran once: whoever came second took what the first one made.
    assert sorted(project.ran()) == sorted(ALL)
    assert sorted(output["emit"] for output in outputs) == [False, True]
    project.run()
    assert project.ran() == []


@pytest.mark.parametrize("exclusive", [True, False])
def test_exclusive_stages_run_one_at_a_time(
    project: FakeProject, monkeypatch: pytest.MonkeyPatch, exclusive: bool
) -> None:
    # Two threads meet inside the stage, unless it is exclusive: then the first one waits in vain.
    meeting = threading.Barrier(2, timeout=0.2 if exclusive else 60)
    met: list[bool] = []

    def run(stage: FakeImport, job: Job[Any]) -> None:
        try:
            meeting.wait()
            met.append(True)
        except threading.BrokenBarrierError:
            met.append(False)
        (job.out / "module.json").write_text("module\n")

    monkeypatch.setattr(FakeImport, "run", run)
    monkeypatch.setattr(FakeImport, "exclusive", exclusive)
    project.write("other.txt", "another model\n")
    models = ("model.txt", "other.txt")
    with ThreadPoolExecutor(2) as pool:
        assert len(list(pool.map(lambda name: project.run(until="import", model=name), models))) == 2
    assert met == [not exclusive, not exclusive]


@pytest.mark.parametrize("name", ["build", "build/demo/rv64-rvp"])
def test_a_file_where_results_go_is_reported_before_anything_runs(project: FakeProject, name: str) -> None:
    project.write(name, "mine")
    with pytest.raises(PipelineError) as caught:
        project.run()
    message = f"{name} is a file; the build folder is build/demo/rv64-rvp\nmove it away"
    assert str(caught.value) == message
    assert project.ran() == []
    project.run(until="emit")


def test_until_stops_early_and_publishes_nothing(project: FakeProject) -> None:
    (project.root / "bin" / "fakecc").unlink()
    result = project.run(until="emit")
    assert list(result.artifacts) == ["import", "emit"]
    assert result.report is None
    assert not (project.root / "build/demo/rv64-rvp/firmware.elf").exists()
