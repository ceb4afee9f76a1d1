"""Recipes, variants and stages on the command line, and errors for unknown ones."""

from pathlib import Path

import pytest

from pipeline.commands.tasks import recipe_tasks
from pipeline.errors import RecipeError
from pipeline.recipes.loader import paths_to_names
from pipeline.recipes.recipe_arguments import (
    check_matrix_arguments,
    check_recipe_arguments,
    matching_recipes,
    split_names,
    unknown_part_error,
)
from tests.unit.pipeline.conftest import RECIPE, FakeProject

STAGES = "known stages: import, emit, compile, report"


@pytest.mark.parametrize(
    ("words", "selected", "message"),
    [
        (["demmo"], [], "unknown recipe 'demmo'; did you mean 'demo'?\nknown recipes: demo, dune"),
        (["zz*"], [], "no recipe matches 'zz*'\nknown recipes: demo, dune"),
        (["layers/zz*"], [], "no recipe matches 'layers/zz*'\nknown recipes: demo, dune, layers/add"),
        (["dune:emit"], ["demo"], "'dune:emit' is not selected by recipe=demo; remove recipe= to run it"),
    ],
)
def test_unknown_recipe_arguments(project: FakeProject, words: list[str], selected: list[str], message: str) -> None:
    project.recipe(RECIPE, "dune")
    project.recipe(RECIPE, "layers/add")
    with pytest.raises(RecipeError) as caught:
        check_recipe_arguments(words, selected, project.root)
    assert str(caught.value) == message


def test_several_recipes_in_one_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert split_names(["a, b", "c", "m:x,d:emit", "set=a=1,b=2", "--only=a,b"]) == [
        *("a", "b", "c", "m:x", "d:emit"),
        *("set=a=1,b=2", "--only=a,b"),
    ]
    assert split_names([",", "a,,b,"]) == [",", "a", "b"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a,b.yaml").touch()
    assert split_names(["a,b.yaml", "a.yaml,b.yaml"]) == ["a,b.yaml", "a.yaml", "b.yaml"]


@pytest.mark.parametrize(
    ("part", "variants", "message"),
    [
        ("emti", [], f"recipe 'demo' has no matrix and no stage 'emti'; did you mean 'emit'?\n{STAGES}"),
        ("emit", [], "'demo:emit' is a stage, not a recipe\n`doit run demo:emit` runs it"),
        ("a:emit", ["a"], "'demo:a:emit' is a stage, not a recipe\n`doit run demo:a:emit` runs it"),
        ("ab-c", ["ab-d"], "matrix 'demo' has no variant 'ab-c'; did you mean 'ab-d'?\nknown variants: ab-d"),
    ],
)
def test_unknown_parts(project: FakeProject, part: str, variants: list[str], message: str) -> None:
    assert str(unknown_part_error("demo", part, variants, project.registry)) == message


def test_a_stage_of_a_whole_matrix_is_refused_with_what_runs_it(project: FakeProject) -> None:
    check_matrix_arguments(
        ["demo", "demo:host", "demo:host:emit", "other:emit", "demo:*:emit"], "demo", project.registry
    )
    for stage in ("emit", "publish"):
        with pytest.raises(RecipeError) as caught:
            check_matrix_arguments(["demo", f"demo:{stage}"], "demo", project.registry)
        message = f"'demo:{stage}' is a stage, but 'demo' is a matrix"
        assert str(caught.value) == f"{message}\n`doit run 'demo:*:{stage}'` runs it for all variants"


def test_a_path_is_the_recipe_of_its_file(project: FakeProject) -> None:
    inside, outside, named = "recipes/demo.yaml", "elsewhere/other.yaml", "elsewhere/third.yaml"
    project.write(outside, RECIPE.replace("name: demo\n", ""))
    project.write(named, RECIPE.replace("demo", "called"))
    words = [inside, "demo", f"{outside}:emit", named]
    assert matching_recipes(words, project.root, project.registry) == ["demo", outside, named]
    check_recipe_arguments(words, [], project.root)
    assert paths_to_names([*words, "-n", "set=x.yaml"], project.root) == [
        *("demo", "demo", "other:emit", "called", "-n", "set=x.yaml")
    ]
    tasks = {f"{task['basename']}:{task['name']}" for task in recipe_tasks(words, project.root, project.registry)}
    assert {"demo:emit", "other:emit", "called:emit"} < tasks
    with pytest.raises(RecipeError, match=r"^recipe file elsewhere/none\.yaml does not exist\n"):
        check_recipe_arguments(["elsewhere/none.yaml"], [], project.root)
