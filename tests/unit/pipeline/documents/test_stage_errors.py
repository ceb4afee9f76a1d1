"""Stage errors show the position of the value: file, matrix, or command line."""

import pytest

from pipeline.errors import StageFailed
from tests.unit.pipeline.conftest import FakeProject


def failed(project: FakeProject, name: str = "demo", **variables: str) -> list[str]:
    with pytest.raises(StageFailed) as caught:
        project.run(name, **variables)
    lines = str(caught.value).splitlines()
    assert 1 <= len(lines) <= 5
    return lines


def test_in_the_recipe(project: FakeProject) -> None:
    project.edit("recipes/demo.yaml", "unroll: 4", "unroll: 13")
    assert failed(project) == [
        "recipes/demo.yaml:6:18: emit: 13 times is unlucky",
        "    6 |   emit: {unroll: 13}",
        "      |                  ^",
        "take 12",
    ]


@pytest.mark.parametrize("change", ["stages.emit.unroll=13", "stages.emit={unroll: 13}"])
def test_on_the_command_line(project: FakeProject, change: str) -> None:
    assert failed(project, set=change) == [f"set={change}: emit: 13 times is unlucky", "take 12"]


@pytest.mark.parametrize(
    ("axis", "place"),
    [
        ("stages.emit.unroll: [1, 13]", "6:27"),
        ("stages.emit: {a: {unroll: 1}, b: {unroll: 13}}", "6:45"),
        ("target: [host]\n  include: [{target: host, stages.emit.unroll: 13}]", "7:48"),
    ],
)
def test_in_a_matrix(project: FakeProject, axis: str, place: str) -> None:
    project.recipe(f"schema: 1\nname: grid\nmodel: {{file: model.txt}}\ntarget: host\nmatrix:\n  {axis}\n", "grid")
    with project.workspace() as workspace:
        title = workspace.load("grid")[-1].title
    assert failed(project, title)[0] == f"recipes/grid.yaml:{place}: emit: 13 times is unlucky"
