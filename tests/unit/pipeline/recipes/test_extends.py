"""`extends:` merges mappings and replaces lists; errors point to the file with the value."""

from typing import Any

from tests.unit.pipeline.conftest import FakeProject
from tests.unit.pipeline.recipes.test_loader import load, refused


def options(project: FakeProject, kind: str, name: str = "child") -> dict[str, Any]:
    config = load(project, name).recipe.config(kind)
    assert config is not None
    return config.model_dump(exclude={"kind"})


def test_mappings_merge_and_lists_are_replaced(project: FakeProject) -> None:
    project.recipe("schema: 1\nextends: demo\nstages:\n  compile: {flags: [-O, -W]}\n", "child")
    assert options(project, "compile") == {"opt": "O2", "flags": ("-O", "-W")}
    assert options(project, "emit")["unroll"] == 4


def test_another_source_replaces_the_model(project: FakeProject) -> None:
    project.recipe("schema: 1\nextends: demo\nmodel: {zoo: ds_cnn}\n", "child")
    assert load(project, "child").recipe.model.model_dump()["zoo"] == "ds_cnn"
    project.recipe("schema: 1\nextends: child\nmodel: {dtype: uint8}\n", "grandchild")
    model = load(project, "grandchild").recipe.model.model_dump()
    assert (model["zoo"], model["dtype"]) == ("ds_cnn", "uint8")


def test_null_returns_to_the_defaults(project: FakeProject) -> None:
    project.recipe("schema: 1\nextends: demo\nstages: {compile: }\n", "child")
    assert options(project, "compile") == {"opt": "O1", "flags": ()}


def test_an_error_points_to_the_file_with_the_value(project: FakeProject) -> None:
    project.recipe("schema: 1\nextends: demo\nstages:\n  emit: {window: [1, 2]}\n", "child")
    project.edit("recipes/demo.yaml", "unroll: 4", "unroll: four")
    assert refused(project, "child").startswith("recipes/demo.yaml:6:18: stages.emit.unroll: should be a valid integer")
    project.edit("recipes/child.yaml", "[1, 2]", "[1, two]")
    project.edit("recipes/demo.yaml", "unroll: four", "unroll: 4")
    assert refused(project, "child").startswith(
        "recipes/child.yaml:4:22: stages.emit.window.1: should be a valid integer, is 'two'\n"
        "    4 |   emit: {window: [1, two]}\n"
    )


def test_cycle(project: FakeProject) -> None:
    project.recipe("schema: 1\nextends: b\n", "a")
    project.recipe("schema: 1\nextends: a\n", "b")
    assert refused(project, "a").startswith(
        "recipes/b.yaml:2:10: extends forms a cycle: recipes/a.yaml -> recipes/b.yaml -> recipes/a.yaml"
    )
