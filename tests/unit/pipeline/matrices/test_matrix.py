"""`matrix:`: which combinations, what they are called, what a mistake prints, what overrides do."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from pipeline.errors import RecipeError
from pipeline.matrices.matrix import expand
from pipeline.recipes.loader import LoadedRecipe, load_recipe, load_recipes
from tests.unit.pipeline.conftest import FakeProject

AXIS = "target: [rv64-rvp, host]"
MATRIX = """\
schema: 1
name: grid
model: {file: model.txt}
matrix:
  model:
    kws: {zoo: ds_cnn}
    file: {file: model.txt}
  target: [rv64-rvp, host]
stages:
  emit: {unroll: 4}
"""


def load(project: FakeProject, source: str = "grid", **variables: str) -> tuple[LoadedRecipe, ...]:
    return load_recipes(source, root=project.root, registry=project.registry, variables=variables)


def names(project: FakeProject, source: str = "grid", **variables: str) -> list[str]:
    return [loaded.title.removeprefix("grid:") for loaded in load(project, source, **variables)]


def refused(project: FakeProject, source: str = "grid", **variables: str) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        load(project, source, **variables)
    lines = str(caught.value).splitlines()
    assert 1 <= len(lines) <= 5
    return lines


@pytest.fixture
def grid(project: FakeProject) -> FakeProject:
    project.recipe(MATRIX, "grid")
    return project


def never(message: str, path: tuple[str | int, ...], **_: Any) -> RecipeError:
    raise AssertionError(f"{message} at {path}")


def test_include_is_that_of_github_actions() -> None:
    # The example and its result: docs.github.com, "Expanding or adding matrix configurations".
    matrix = yaml.safe_load("""
        x.fruit: [apple, pear]
        x.animal: [cat, dog]
        include:
          - {x.color: green}
          - {x.color: pink, x.animal: cat}
          - {x.fruit: apple, x.shape: circle}
          - {x.fruit: banana}
          - {x.fruit: banana, x.animal: cat}
    """)
    combinations, _ = expand(matrix, [], ("x",), never)
    assert [{point.key[2:]: point.value for point in one.points} for one in combinations] == [
        {"fruit": "apple", "animal": "cat", "color": "pink", "shape": "circle"},
        {"fruit": "apple", "animal": "dog", "color": "green", "shape": "circle"},
        {"fruit": "pear", "animal": "cat", "color": "pink"},
        {"fruit": "pear", "animal": "dog", "color": "green"},
        {"fruit": "banana"},
        {"fruit": "banana", "animal": "cat"},
    ]
    assert [one.name for one in combinations][-3:] == [
        "fruit_pear-animal_dog",
        "fruit_banana",
        "fruit_banana-animal_cat",
    ]


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ("model: [{zoo: ds_cnn}, {zoo: ds_cnn, dtype: float32}]", ["ds_cnn", "ds_cnn_float32"]),
        ("model: ['zoo:ds_cnn', nets/my net.tflite]", ["ds_cnn", "my_net"]),
        ("model: [{op: relu, shape: [2]}, {op: relu, shape: [3]}]", ["relu", "relu_2"]),
        ("stages.emit.unroll: [1, 16]", ["unroll_1", "unroll_16"]),
        ("stages.emit.window: {one: [1, 1], two: [2, 2]}", ["one", "two"]),
        ("include: [{stages.emit.unroll: 2, target: host}]", ["unroll_2-host"]),
    ],
)
def test_names(project: FakeProject, axes: str, expected: list[str]) -> None:
    project.recipe(f"schema: 1\ntarget: host\nmodel: {{file: model.txt}}\nmatrix:\n  {axes}\n", "grid")
    assert names(project) == expected


def test_exclude_and_include(grid: FakeProject) -> None:
    grid.edit(
        "recipes/grid.yaml",
        "stages:",
        """\
  exclude:
    - {model: kws, target: "rv64-*"}
  include:
    - {target: host, stages.emit.unroll: 16}
    - {model: kws, target: rv32-rvp}
stages:""",
    )
    found = load(grid)
    assert [one.variant for one in found] == ["kws-host", "file-rv64-rvp", "file-host", "kws-rv32-rvp"]
    unrolls = [one.recipe.config("emit").model_dump()["unroll"] for one in found]  # type: ignore[union-attr]
    assert unrolls == [16, 4, 16, 4]
    assert names(grid, target="host") == ["kws-host", "file-host"]
    assert names(grid, model="kws") == ["kws-host", "kws-rv32-rvp"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (AXIS, "target: [rv64-rvp, hots]", ["recipes/grid.yaml:8:22: unknown target 'hots'; did you mean 'host'?"]),
        (
            AXIS,
            "targets: [host]",
            [
                "recipes/grid.yaml:8:3: unknown key 'targets'; did you mean 'target'?",
                "    8 |   targets: [host]",
                "      |   ^",
                "known keys: target, model, include, exclude, or a path as in set=",
            ],
        ),
        ("{zoo: ds_cnn}", "{zo: ds_cnn}", ["recipes/grid.yaml:6:10: model: give exactly one of"]),
        (AXIS, "stages.emti.unroll: [1]", ["recipes/grid.yaml:8:3: unknown stage 'emti'; did you mean 'emit'?"]),
        (
            AXIS,
            "target: [host]\n  stages.emit.unroll: [1, x]",
            ["recipes/grid.yaml:9:27: stages.emit.unroll: should be a valid integer, is 'x'"],
        ),
        (AXIS, "target: host", ["recipes/grid.yaml:8:11: matrix.target: should be a list"]),
        (
            AXIS,
            "target: [host]\n  exclude: [{target: hist}]",
            ["recipes/grid.yaml:9:22: no value 'hist' on axis target; did you mean 'host'?"],
        ),
        (AXIS, "target: [host]\n  exclude: [{target: '*'}]", ["recipes/grid.yaml:4:1: no combination remains"]),
        (
            AXIS,
            "target: [host]\n  include: [{target: host, stages.emit.unrol: 3}]",
            ["recipes/grid.yaml:9:28: unknown key 'unrol'; did you mean 'unroll'?"],
        ),
        (
            AXIS,
            "target: [host, rv64-rvp, host]",
            ["recipes/grid.yaml:8:28: matrix.target: has this value twice, first as host"],
        ),
        (
            "{file: model.txt}\n  target",
            "{zoo: ds_cnn}\n  target",
            ["recipes/grid.yaml:7:11: matrix.model: has this value twice, first as kws"],
        ),
    ],
)
def test_mistake_shows_its_place(grid: FakeProject, old: str, new: str, expected: list[str]) -> None:
    grid.edit("recipes/grid.yaml", old, new)
    lines = refused(grid)
    for line, start in zip(lines, expected, strict=False):
        assert line.startswith(start)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"target": "host"}, ["kws-host", "file-host"]),
        ({"target": "host,rv32-rvp"}, ["kws-host", "kws-rv32-rvp", "file-host", "file-rv32-rvp"]),
        ({"model": "zoo:ds_cnn", "target": "host"}, ["kws-host"]),
        ({"model": "zoo:resnet_8,file", "target": "host"}, ["resnet_8-host", "file-host"]),
        ({"set": "matrix.target=[rv32-rvp]"}, ["kws-rv32-rvp", "file-rv32-rvp"]),
    ],
)
def test_overrides(grid: FakeProject, variables: dict[str, str], expected: list[str]) -> None:
    assert names(grid, **variables) == expected


def test_set_goes_over_the_matrix(grid: FakeProject) -> None:
    grid.edit("recipes/grid.yaml", "target: [", "stages.emit.unroll: [1, 2]\n  target: [")
    found = load(grid, target="host", model="kws", set="stages.emit.unroll=9,stages.compile.opt=O3")
    assert [one.variant for one in found] == ["kws-unroll_9-host"]
    assert [one.model_dump()["opt"] for one in found[0].recipe.stages.values() if "opt" in one.model_dump()] == ["O3"]
    assert refused(grid, set="stages.emit.unroll=x")[0].startswith("set=stages.emit.unroll=x: stages.emit.unroll:")
    assert refused(grid, target="hots")[0] == "target=hots: unknown target 'hots'; did you mean 'host'?"


def test_sub_recipe_by_name(grid: FakeProject) -> None:
    assert names(grid, "grid:kws-host") == ["kws-host"]
    assert names(grid, "grid:*-host") == ["kws-host", "file-host"]
    assert refused(grid, "grid:kws-hots") == [
        "matrix 'grid' has no 'kws-hots'; did you mean 'kws-host'?",
        "known sub-recipes: kws-rv64-rvp, kws-host, file-rv64-rvp, file-host",
    ]
    assert refused(grid, "demo:x")[0] == "recipe 'demo' has no matrix and no stage 'x'"
    with pytest.raises(RecipeError, match="recipe 'grid' is a matrix of 4; one of them is needed here"):
        load_recipe("grid", root=grid.root, registry=grid.registry)


def test_matrix_is_inherited_and_may_be_taken_away(grid: FakeProject) -> None:
    grid.recipe("schema: 1\nextends: grid\nmatrix: {target: [rv32-rvp]}\n", "child")
    assert [one.title for one in load(grid, "child")] == ["child:kws-rv32-rvp", "child:file-rv32-rvp"]
    grid.recipe("schema: 1\nextends: grid\ntarget: host\nmatrix: null\n", "child")
    assert [one.title for one in load(grid, "child")] == ["child"]


def test_too_many_combinations_are_refused_before_they_are_made(grid: FakeProject, monkeypatch: Any) -> None:
    def made(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr("pipeline.matrices.matrix._combinations", made)
    values = ", ".join(map(str, range(1000)))
    more = "".join(f"  stages.emit.x{n}: [{values}]\n" for n in range(12))
    grid.recipe(MATRIX.replace("stages:\n", f"{more}stages:\n"), "grid")
    assert refused(grid)[0] == f"recipes/grid.yaml:4:1: the matrix has {4 * 1000**12:,} combinations; 5,000 at most"


def test_what_exclude_leaves_counts(grid: FakeProject) -> None:
    values = ", ".join(map(str, range(4000)))
    text = MATRIX.replace("stages:\n", f"  stages.emit.unroll: [{values}]\nstages:\n")
    grid.recipe(text, "grid")
    assert "has 16,000 combinations" in refused(grid)[0]
    left_out = "  exclude: [{model: kws}, {target: host, stages.emit.unroll: '*_?*'}]\n"
    grid.recipe(text.replace("stages:\n", f"{left_out}stages:\n"), "grid")
    assert len(load(grid)) == 4000
    many = "  stages.emit.y: [" + ", ".join(map(str, range(100))) + "]\n"
    grid.recipe(text.replace("stages:\n", f"{many}{left_out}stages:\n"), "grid")
    assert "has 1,600,000 combinations, before what `exclude` leaves out; 200,000 at most" in refused(grid)[0]
    grid.recipe(MATRIX.replace("stages:\n", "  exclude: [{}]\nstages:\n"), "grid")
    assert "an entry that names no axis would exclude everything" in refused(grid)[0]


def test_include_is_bounded_too(grid: FakeProject) -> None:
    entries = ", ".join("{target: host}" for _ in range(5001))
    grid.recipe(MATRIX.replace("stages:\n", f"  include: [{entries}]\nstages:\n"), "grid")
    assert "`include` has 5,001 entries; 5,000 at most" in refused(grid)[0]
