"""The command that repeats a run, as report.html shows it."""

import shlex
from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.keys.repeat_command import repeat_command
from pipeline.project import project_of
from pipeline.recipes.loader import LoadedRecipe, load_recipe
from tests.unit.pipeline.conftest import FakeProject


def load(project: FakeProject, source: Any, variables: Mapping[str, str]) -> LoadedRecipe:
    return load_recipe(source, root=project.root, registry=project.registry, variables=variables)


@pytest.mark.parametrize(
    ("source", "variables", "command"),
    [
        ("demo", {}, "doit run demo target=rv64-rvp"),
        ("demo", {"target": "host"}, "doit run demo target=host"),
        ("demo", {"model": "a b.txt"}, "doit run demo 'model=a b.txt' target=rv64-rvp"),
        (
            "demo",
            {"set": "stages.emit.unroll=8;stages.emit.window=[2, 3]"},
            "doit run demo target=rv64-rvp 'set=stages.emit.unroll=8,stages.emit.window=[2, 3]'",
        ),
        ("else where/mine.yaml", {}, "doit run 'else where/mine.yaml' target=rv64-rvp"),
        ("many:host-u2", {"set": "stages.compile.opt=O3"}, "doit run many:host-u2 set=stages.compile.opt=O3"),
    ],
)
def test_the_command_gives_the_same_recipe(
    project: FakeProject, source: str, variables: dict[str, str], command: str
) -> None:
    recipe = (project.root / "recipes/demo.yaml").read_text()
    project.write("else where/mine.yaml", recipe.replace("name: demo\n", ""))
    matrix = "matrix: {target: [host, rv64-rvp], stages.emit.unroll: {u2: 2, u4: 4}}\n"
    project.write("recipes/many.yaml", recipe.replace("name: demo\n", matrix))
    project.write("a b.txt", "a model\n")
    loaded = load(project, source, variables)
    assert repeat_command(loaded, project_of(project.root)) == command
    _, _, name, *values = shlex.split(command)
    again = load(project, name, dict(value.split("=", 1) for value in values))
    assert (again.recipe, again.target) == (loaded.recipe, loaded.target)
