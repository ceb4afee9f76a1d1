"""Listing and names of recipe files."""

import os

import pytest

from pipeline.errors import RecipeError
from pipeline.recipes.recipe_files import recipe_names
from tests.unit.pipeline.conftest import RECIPE, Doit, FakeProject

BASE = RECIPE.replace("name: demo", "name: base\nabstract: true")


def refused(project: FakeProject, name: str, **variables: str) -> str:
    with project.workspace() as workspace, pytest.raises(RecipeError) as caught:
        workspace.load(name, variables)
    return str(caught.value)


def test_abstract_recipe_is_extended_or_given_a_model(project: FakeProject, doit: Doit) -> None:
    project.recipe(BASE, "base")
    project.recipe("schema: 1\nextends: base\n", "child")
    assert recipe_names(project.root) == ["child", "demo"]
    assert [line.split()[0] for line in doit("list")[1].splitlines()] == ["child", "demo"]
    assert refused(project, "base").splitlines()[0] == (
        "recipes/base.yaml:3:11: recipe 'base' is abstract: other recipes extend it"
    )
    with project.workspace() as workspace:
        assert not workspace.load("child")[0].recipe.abstract
        assert workspace.load("base", {"model": "zoo:ds_cnn"})
    code, _, err = doit("run", "base")
    assert (code, "is abstract" in err) == (3, True)
    # A pattern means recipes that run.
    assert doit("run", "*")[0] == 0
    assert not (project.root / "build/base").exists()


def test_recipe_in_a_folder_is_listed_and_run_by_name_but_not_by_star(project: FakeProject, doit: Doit) -> None:
    project.recipe("schema: 1\nextends: demo\n", "layers/one")
    assert recipe_names(project.root) == ["demo"]
    assert recipe_names(project.root, nested=True) == ["demo", "layers/one"]
    assert [line.split()[0] for line in doit("list")[1].splitlines()] == ["demo", "layers/one"]
    assert doit("run", "*")[0] == 0
    assert not (project.root / "build/layers/one").exists()
    for words in (["layers/*"], ["recipe=layers/one"], ["layers/one"]):
        assert doit("run", *words)[0] == 0
    assert (project.root / "build/layers/one").is_dir()
    with project.workspace() as workspace:
        assert workspace.store.runs.find("layers/one", "rv64-rvp") is not None
    assert "did you mean 'layers/one'?" in refused(project, "layers/ome")


def test_what_lies_in_a_recipes_place(project: FakeProject) -> None:
    (project.root / "recipes/link.yaml").symlink_to("nowhere")
    (project.root / "recipes/folder.yaml").mkdir()
    os.mkfifo(project.root / "recipes/pipe.yaml")
    for name, what in (("link", "a link that leads nowhere"), ("folder", "a folder"), ("pipe", "a pipe")):
        assert refused(project, name) == f"recipe '{name}': recipes/{name}.yaml is {what}"
        assert refused(project, f"recipes/{name}.yaml").startswith(f"recipe file recipes/{name}.yaml is {what}\n")
