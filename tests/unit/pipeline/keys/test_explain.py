"""Why a stage will run."""

import shutil

from pipeline.keys.explain import explain
from tests.unit.pipeline.conftest import FakeProject


def reasons(project: FakeProject, **variables: str) -> dict[str, tuple[str, ...] | None]:
    """Return reasons by stage: None if cached, `if emit` if that depends on emit's output."""
    with project.workspace() as workspace:
        plan = workspace.plan("demo", variables)
        explained = explain(plan, workspace.store)
    conditions = {explanation.kind: tuple(f"if {name}" for name in explanation.unless) for explanation in explained}
    return {
        explanation.kind: conditions[explanation.kind] or None if explanation.cached else explanation.reasons
        for explanation in explained
    }


def test_a_changed_parameter_and_later_stages(project: FakeProject) -> None:
    """Later stages are cached if the output stays equal; stages with other reasons run anyway."""
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
    explained = reasons(project, target="rv32-scalar")
    assert explained["import"] is None
    assert explained["emit"] == ("code code/emit_more.py is now used", "target word_bits: 64 -> 32")
    assert explained["compile"] == ("tool fakecc: 13.2.0 -> 14.1.0",)
    assert explained["report"] == ("code code/report.py changed", "target name: rv64-rvp -> rv32-scalar")
    project.write("model.txt", "other\n")
    assert reasons(project)["import"] == ("file model changed",)
    explained = reasons(project, model="zoo:ds_cnn")
    assert explained["import"] is not None
    assert explained["import"][0] == "file model is no longer read"
    assert "model zoo: nothing -> ds_cnn" in explained["import"]


def test_only_runs_of_the_recipe_are_compared_with(project: FakeProject) -> None:
    """Commands that change options by themselves, as export does, are not runs of the recipe."""
    project.run()
    project.run(set="stages.emit.unroll=2", record=False)
    assert reasons(project, set="stages.emit.unroll=8")["emit"] == ("parameter unroll: 4 -> 8",)
    last = project.workspace().store.runs.find("demo", "rv64-rvp")
    assert last is not None and last.changes == ()


def test_damaged_and_deleted(project: FakeProject) -> None:
    result = project.run()
    (result.artifacts["emit"] / "src" / "model.h").unlink()
    shutil.rmtree(result.artifacts["compile"].parent)
    explained = reasons(project)
    assert explained["emit"] == ("its artifact is damaged: a file was changed or is missing",)
    assert explained["compile"] == ("the artifact of the last run was deleted",)
    # The output of compile is unknown, and so are the inputs of report.
    assert explained["report"] == ("input compile was removed",)
