"""`matrix:`: combinations, their names, error messages and overrides."""

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
    assert [{point.key[2:]: point.value for point in variant.points} for variant in combinations] == [
        {"fruit": "apple", "animal": "cat", "color": "pink", "shape": "circle"},
        {"fruit": "apple", "animal": "dog", "color": "green", "shape": "circle"},
        {"fruit": "pear", "animal": "cat", "color": "pink"},
        {"fruit": "pear", "animal": "dog", "color": "green"},
        {"fruit": "banana"},
        {"fruit": "banana", "animal": "cat"},
    ]
    assert [variant.name for variant in combinations][-3:] == [
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
    combinations = load(grid)
    assert [variant.variant for variant in combinations] == ["kws-host", "file-rv64-rvp", "file-host", "kws-rv32-rvp"]
    unrolls = [variant.recipe.config("emit").model_dump()["unroll"] for variant in combinations]  # type: ignore[union-attr]
    assert unrolls == [16, 4, 16, 4]
    assert names(grid, target="host") == ["kws-host", "file-host"]
    assert names(grid, model="kws") == ["kws-host", "kws-rv32-rvp"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (AXIS, "target: [rv64-rvp, hots]", "8:22: unknown target 'hots'; did you mean 'host'?"),
        (AXIS, "targets: [host]", "8:3: unknown key 'targets'; did you mean 'target'?"),
        ("{zoo: ds_cnn}", "{zo: ds_cnn}", "6:10: model: give exactly one of"),
        (AXIS, "stages.emti.unroll: [1]", "8:3: unknown stage 'emti'; did you mean 'emit'?"),
        (AXIS, f"{AXIS}\n  stages.emit.unroll: [1, x]", "9:27: stages.emit.unroll: should be a valid integer, is 'x'"),
        (AXIS, "target: host", "8:11: matrix.target: should be a list"),
        (AXIS, f"{AXIS}\n  exclude: [{{target: hist}}]", "9:22: no value 'hist' on axis target; did you mean 'host'?"),
        (AXIS, f"{AXIS}\n  exclude: [{{target: '*'}}]", "4:1: all combinations are excluded"),
        (AXIS, f"{AXIS}\n  exclude: [{{}}]", "9:13: "),
        (AXIS, f"{AXIS}\n  include: [{{stages.emit.unrol: 3}}]", "9:14: unknown key 'unrol'; did you mean 'unroll'?"),
        (AXIS, "target: [host, rv64-rvp, host]", "8:28: matrix.target: duplicate value, already used as host"),
        ("{file: model.txt}\n  t", "{zoo: ds_cnn}\n  t", "7:11: matrix.model: duplicate value, already used as kws"),
    ],
)
def test_an_error_shows_its_position(grid: FakeProject, old: str, new: str, expected: str) -> None:
    grid.edit("recipes/grid.yaml", old, new)
    assert refused(grid)[0].startswith(f"recipes/grid.yaml:{expected}")


def test_combinations_are_bounded(grid: FakeProject) -> None:
    def with_axes(*axes: str) -> str:
        return MATRIX.replace("stages:\n", "".join(f"  {axis}\n" for axis in axes) + "stages:\n")

    unroll = f"stages.emit.unroll: {list(range(4000))}"
    exclude = "exclude: [{model: kws}, {target: host, stages.emit.unroll: '*_?*'}]"
    for axes, expected in (
        (
            [f"stages.emit.x{n}: {list(range(1000))}" for n in range(12)],
            f"{4 * 1000**12:,} combinations; the limit is 5,000",
        ),
        ([unroll], "has 16,000 combinations"),
        (
            [unroll, f"stages.emit.y: {list(range(100))}", exclude],
            "has 1,600,000 combinations before `exclude`; the limit is 200,000",
        ),
        ([f"include: [{', '.join(['{target: host}'] * 5001)}]"], "`include` has 5,001 entries; the limit is 5,000"),
    ):
        grid.recipe(with_axes(*axes), "grid")
        assert expected in refused(grid)[0]
    grid.recipe(with_axes(unroll, exclude), "grid")
    assert len(load(grid)) == 4000


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


def test_set_applies_to_all_combinations(grid: FakeProject) -> None:
    grid.edit("recipes/grid.yaml", "target: [", "stages.emit.unroll: [1, 2]\n  target: [")
    recipes = load(grid, target="host", model="kws", set="stages.emit.unroll=9,stages.compile.opt=O3")
    assert [recipe.variant for recipe in recipes] == ["kws-unroll_9-host"]
    assert [
        recipe.model_dump()["opt"] for recipe in recipes[0].recipe.stages.values() if "opt" in recipe.model_dump()
    ] == ["O3"]
    assert refused(grid, set="stages.emit.unroll=x")[0].startswith("set=stages.emit.unroll=x: stages.emit.unroll:")
    assert refused(grid, target="hots")[0] == "target=hots: unknown target 'hots'; did you mean 'host'?"


def test_a_variant_by_name(grid: FakeProject) -> None:
    assert names(grid, "grid:kws-host") == ["kws-host"]
    assert names(grid, "grid:*-host") == ["kws-host", "file-host"]
    assert refused(grid, "grid:kws-hots") == [
        "matrix 'grid' has no variant 'kws-hots'; did you mean 'kws-host'?",
        "known variants: kws-rv64-rvp, kws-host, file-rv64-rvp, file-host",
    ]
    assert refused(grid, "demo:x")[0] == "recipe 'demo' has no matrix and no stage 'x'"
    with pytest.raises(RecipeError, match="recipe 'grid' is a matrix of 4 variants; name one of them"):
        load_recipe("grid", root=grid.root, registry=grid.registry)


def test_a_matrix_is_inherited_and_can_be_removed(grid: FakeProject) -> None:
    grid.recipe("schema: 1\nextends: grid\nmatrix: {target: [rv32-rvp]}\n", "child")
    assert [variant.title for variant in load(grid, "child")] == ["child:kws-rv32-rvp", "child:file-rv32-rvp"]
    grid.recipe("schema: 1\nextends: grid\ntarget: host\nmatrix: null\n", "child")
    assert [variant.title for variant in load(grid, "child")] == ["child"]
