"""Dependencies of keys."""

from pathlib import Path

import pytest

from pipeline.errors import RecipeError
from pipeline.keys.planner import Plan
from pipeline.plugins.registry import Registry
from pipeline.runs.workspace import Workspace
from stages.backends.targets.memory import Size
from tests.unit.pipeline.conftest import FakeProject
from tests.unit.pipeline.fake_stages import EmitConfig, FakeCompile, FakeEmit, FakeImport, FakeReport


def plan(project: FakeProject, recipe: str = "demo", **variables: str) -> Plan:
    with project.workspace() as workspace:
        return workspace.plan(recipe, variables)


def keys(project: FakeProject, recipe: str = "demo", **variables: str) -> dict[str, str]:
    return {action.kind: action.identity for action in plan(project, recipe, **variables)}


def test_key_names_everything_it_depends_on(project: FakeProject) -> None:
    actions = plan(project)
    ingredients = actions["compile"].ingredients
    assert "inputs" not in ingredients
    assert actions["compile"].consuming({"emit": "abc"}) == {**ingredients, "inputs": {"emit": "abc"}}
    assert ingredients["tools"] == {"fakecc": "13.2.0"}
    assert list(ingredients["code"]) == ["code/compile.py"]
    assert ingredients["parameters"] == {"opt": "O2", "flags": ["-g"]}
    assert (ingredients["target"], ingredients["model"], ingredients["files"]) == ({}, None, {})
    assert actions["import"].ingredients["model"] == {
        "file": "model.txt",
        "signature": None,
        "shapes": None,
        "layout": None,
        "states": None,
        "constants": None,
        "incremental": None,
    }
    assert list(actions["import"].ingredients["files"]) == ["model"]
    assert actions["emit"].ingredients["target"] == {"word_bits": 64}


def test_keys_do_not_depend_on_the_location_of_the_project(project: FakeProject, tmp_path: Path) -> None:
    before = keys(project)
    moved = tmp_path.with_name(tmp_path.name + "-moved")
    tmp_path.rename(moved)
    project.root = moved
    (moved / "bin" / "fakecc").write_text("#!/bin/sh\necho fakecc 13.2.0\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{moved / 'bin'}:/usr/bin:/bin")
        assert keys(project) == before


def test_a_missing_file_is_reported_by_the_stage_that_reads_it(project: FakeProject) -> None:
    """Stage ptq has its options under quantize."""
    variables = {"set": "stages.quantize.data.files=[gone.npy]"}
    message = r"ptq: file gone\.npy does not exist"
    with Workspace(store=project.store) as workspace, pytest.raises(RecipeError, match=message):
        workspace.plan("digits_ptq", variables, until="ptq")


def test_missing_file_points_to_the_line_that_names_it(project: FakeProject) -> None:
    (project.root / "model.txt").unlink()
    with pytest.raises(RecipeError) as caught:
        plan(project)
    assert str(caught.value) == (
        "recipes/demo.yaml:4:15: import: file model.txt does not exist\n"
        "    4 | model: {file: model.txt}\n"
        "      |               ^"
    )
    with pytest.raises(RecipeError, match=r"^model=gone.tflite: import: file gone.tflite does not exist$"):
        plan(project, model="gone.tflite")
    project.write("code/net.tflite", "")
    with pytest.raises(RecipeError, match=r"is a folder, not a file\nmodels in it: net\.tflite$"):
        plan(project, model="code")
    with pytest.raises(RecipeError, match="file /dev/null is not a regular file"):
        plan(project, model="/dev/null")


def test_memory_limits_reach_the_stages_that_have_them(project: FakeProject) -> None:
    class Limited(EmitConfig):
        arena_limit: Size | None = None

    registry = Registry([FakeImport(), type("Emit", (FakeEmit,), {"config": Limited})(), FakeCompile(), FakeReport()])
    project.registry = registry
    with project.workspace() as workspace:
        free = workspace.plan("demo")
        bound = workspace.plan("demo", {"set": "memory={arena_limit: 64K}"})
        other = workspace.plan("demo", {"set": "memory={arena_limit: 64K},stages.emit.arena_limit=9"})
    limits = [plan["emit"].ingredients["parameters"]["arena_limit"] for plan in (free, bound, other)]
    assert limits == [None, 65536, 9]
    assert free["import"].identity == bound["import"].identity
    assert free["emit"].identity != bound["emit"].identity


def test_a_stage_without_defaults_needs_an_entry(project: FakeProject) -> None:
    class Needs(EmitConfig):
        must: int

    class EmitNeeds(FakeEmit):
        config = Needs

    project.registry = Registry([FakeImport(), EmitNeeds()])
    project.recipe("schema: 1\ntarget: host\nmodel: {zoo: ds_cnn}\nstages: {import: {}}\n")
    with pytest.raises(RecipeError, match=r"recipes/demo.yaml:4:9: stage 'emit' needs a value for: must\n"):
        plan(project)
