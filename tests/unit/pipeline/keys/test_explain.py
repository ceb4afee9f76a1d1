"""Why a stage will run."""

from __future__ import annotations

import shutil

from pipeline.keys.explain import explain
from tests.unit.pipeline.conftest import FakeProject


def reasons(project: FakeProject, **variables: str) -> dict[str, tuple[str, ...] | None]:
    """None for a stage that is cached in any case; `if emit` for one that is if emit changes nothing."""
    with project.workspace() as workspace:
        plan = workspace.plan("demo", variables)
        explained = explain(plan, workspace.store)
    conditions = {one.kind: tuple(f"if {name}" for name in one.unless) for one in explained}
    return {one.kind: conditions[one.kind] or None if one.cached else one.reasons for one in explained}


def test_changed_parameter_and_what_follows(project: FakeProject) -> None:
    """What follows is cached if the stage leaves the same bytes; what has reasons of its own runs in any case."""
    project.run()
    assert reasons(project, set="stages.emit.unroll=8,stages.compile.flags=[-g, -Wall]") == {
        "import": None,
        "emit": ("parameter unroll: 4 -> 8",),
        "compile": ("parameter flags: ['-g'] -> ['-g', '-Wall']",),
        "report": ("if compile",),
    }


def test_changed_code_tool_target_and_model(project: FakeProject) -> None:
    project.run()
    project.edit("code/report.py", "code", "better code")
    project.write("code/emit_more.py", "")
    project.tool("14.1.0")
    found = reasons(project, target="rv32-scalar")
    assert found["import"] is None
    assert found["emit"] == ("code code/emit_more.py is used now", "target word_bits: 64 -> 32")
    assert found["compile"] == ("tool fakecc: 13.2.0 -> 14.1.0",)
    assert found["report"] == ("code code/report.py changed", "target name: rv64-rvp -> rv32-scalar")
    project.write("model.txt", "other\n")
    assert reasons(project)["import"] == ("file model changed",)
    found = reasons(project, model="zoo:ds_cnn")
    assert found["import"] is not None
    assert found["import"][0] == "file model is read no longer"
    assert "model zoo: nothing -> ds_cnn" in found["import"]


def test_damaged_and_deleted(project: FakeProject) -> None:
    result = project.run()
    (result.artifacts["emit"] / "src" / "model.h").unlink()
    shutil.rmtree(result.artifacts["compile"].parent)
    found = reasons(project)
    assert found["emit"] == ("its artifact is damaged: a file was altered or is missing",)
    assert found["compile"] == ("no artifact of an earlier run is left",)
    # What compile will leave is not known, so neither is what report will find.
    assert found["report"] == ("input compile is gone",)
