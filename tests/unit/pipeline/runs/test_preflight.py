"""What a stage is sure to refuse is said before the stages before it have worked."""

import json

import pytest

from pipeline.errors import StageFailed
from tests.unit.pipeline.conftest import RECIPE, Doit, FakeProject


def test_before_anything_runs_at_its_place_in_the_recipe(project: FakeProject, doit: Doit) -> None:
    project.recipe(RECIPE.replace("[-g]", "[-never]"))
    code, out, err = doit("run", "recipe=demo")
    assert (code != 0, out) == (True, "")
    assert "recipes/demo.yaml:9:12: compile: -never is never taken" in err
    assert project.ran() == []
    with pytest.raises(StageFailed, match="-never is never taken"):
        project.run()
    assert project.ran() == []


def test_after_the_first_stage(project: FakeProject, doit: Doit) -> None:
    project.write("model.txt", "huge\n")
    code, _, err = doit("run", "recipe=demo", "target=rv32-rvp")
    assert code != 0
    assert "report: the model does not fit rv32-rvp" in err
    assert project.ran() == ["import"]
    with pytest.raises(StageFailed, match="does not fit rv32-rvp"):
        project.run(target="rv32-rvp")
    assert project.ran() == []
    project.run()
    assert project.ran() == ["emit", "compile", "report"]


@pytest.mark.parametrize(("words", "runs"), [("demo:emit", True), ("demo:emit demo:compile", False)])
def test_only_stages_that_are_asked_for_are_asked(project: FakeProject, doit: Doit, words: str, runs: bool) -> None:
    project.recipe(RECIPE.replace("[-g]", "[-never]"))
    assert (doit("run", *words.split())[0] == 0) == runs
    assert project.ran() == (["import", "emit"] if runs else [])


def test_in_a_matrix_the_others_go_on(project: FakeProject, doit: Doit) -> None:
    """The first sub-recipe owns stages that it shares with those that fit."""
    project.recipe(
        "schema: 1\nname: grid\nmodel: {file: model.txt}\n"
        "matrix: {target: [rv64-scalar, rv64-rvp, host], stages.compile.flags: {usual: [-g], never: [-never]}}\n",
        "grid",
    )
    project.write("model.txt", "huge\n")
    code, _, _ = doit("run", "recipe=grid")
    assert code != 0
    content = json.loads((project.root / "build/grid/matrix.json").read_text())
    errors = {row["name"]: row["error"] for row in content["rows"]}
    assert {name for name, error in errors.items() if not error} == {"rv64-rvp-usual", "host-usual"}
    assert "does not fit rv64-scalar" in errors["rv64-scalar-usual"]
    assert all("-never is never taken" in error for name, error in errors.items() if name.endswith("never"))
