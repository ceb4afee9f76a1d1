"""Overrides of the command line."""

from typing import Any

import pytest

from pipeline.documents.overrides import apply_overrides, parse_overrides
from pipeline.errors import RecipeError
from tests.unit.pipeline.conftest import FakeProject
from tests.unit.pipeline.recipes.test_loader import load, refused


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a.b=1", [("a.b", 1)]),
        ("a=1,b=2", [("a", 1), ("b", 2)]),
        ("a=1; b=x y", [("a", 1), ("b", "x y")]),
        ("a=[1, 2],b={c: 3, d: 4}", [("a", [1, 2]), ("b", {"c": 3, "d": 4})]),
        ("a='1,2',b=true", [("a", "1,2"), ("b", True)]),
        ("a=x=y", [("a", "x=y")]),
        ("a=1e-3", [("a", 0.001)]),
        ("a=", [("a", None)]),
        ("a={b: 1},a.c=2", [("a", {"b": 1}), ("a.c", 2)]),
        ("a=1,a=1", [("a", 1), ("a", 1)]),
    ],
)
def test_set_syntax(text: str, values: list[tuple[str, Any]]) -> None:
    assert [(".".join(map(str, o.path)), o.value) for o in parse_overrides({"set": text})] == values


def test_overrides_create_mappings_and_change_list_items() -> None:
    data = {"a": [{"x": 1}, {"x": 2}]}
    changed, _ = apply_overrides(data, parse_overrides({"set": "a.1.x=5,b.c=6"}))
    assert changed == {"a": [{"x": 1}, {"x": 5}], "b": {"c": 6}}
    assert data == {"a": [{"x": 1}, {"x": 2}]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.9.x=5", "set=a.9.x=5: a is a list of 1 items, without an item '9'"),
        ("b.c=1", "set=b.c=1: b is a single value, without a key 'c'"),
        ("b", "set=b: is not PATH=VALUE\nexample: set=stages.simulate.inputs.seed=3; put lists in brackets"),
        ("a=1,2", "set=2: is not PATH=VALUE\nexample: set=stages.simulate.inputs.seed=3; put lists in brackets"),
        (
            "extends=base",
            """\
set=extends=base: extends cannot be overridden
`doit new recipe NAME model=… extends=OTHER` writes a recipe that extends another""",
        ),
        (
            "name=foo",
            "set=name=foo: a recipe has the name of its file\ncopy or rename the file; NAME.yaml is the recipe NAME",
        ),
        ("b=1,b=2", "set=b=2: duplicate override of b\nalso set by set=b=1"),
        ("c.d=1,c={e: 2}", "set=c={e: 2}: replaces the value of set=c.d=1\nreorder them, or remove one"),
        ("schema=1", "set=schema=1: the schema version cannot be overridden\nremove it"),
        ("b=[1", "set=b=[1: YAML syntax: the list that starts here has no closing ]"),
    ],
)
def test_wrong_set(text: str, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        apply_overrides({"a": [1], "b": 2}, parse_overrides({"set": text}))
    assert str(caught.value) == message


def test_target_and_model(project: FakeProject) -> None:
    loaded = load(project, target="rv32-rvp", model="other.tflite")
    assert loaded.target.name == "rv32-rvp"
    assert loaded.recipe.model.model_dump(exclude_none=True) == {"file": "other.tflite"}
    assert load(project, model="zoo:ds_cnn").recipe.model.model_dump()["zoo"] == "ds_cnn"


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"target": "host,rv32-rvp"}, "one target is needed, got 2: host, rv32-rvp"),
        (
            {"model": "https://example.com/x.tflite"},
            """\
model=https://example.com/x.tflite: a download needs its sha256
give both: set='model={url: "https://example.com/x.tflite", sha256: …}'""",
        ),
    ],
)
def test_an_error_names_the_override(project: FakeProject, variables: dict[str, str], message: str) -> None:
    assert refused(project, **variables) == message


def test_an_error_beside_an_override_shows_the_file(project: FakeProject) -> None:
    project.edit("recipes/demo.yaml", "unroll: 4", "unroll: four")
    assert refused(project, set="stages.emit.window=[1, 2]").startswith("recipes/demo.yaml:6:18: ")


def test_an_override_that_invalidates_a_value_of_the_file_is_named(project: FakeProject) -> None:
    assert refused(project, set="model.zoo=ds_cnn").splitlines() == [
        "recipes/demo.yaml:4:8: model: give exactly one of file, url, zoo, op, chain; got file and zoo",
        "    4 | model: {file: model.txt}",
        "      |        ^",
        "together with set=model.zoo=ds_cnn",
    ]


@pytest.mark.parametrize("name", ["target", "model", "set"])
def test_empty_value(name: str) -> None:
    """The value of an unset shell variable is empty."""
    with pytest.raises(RecipeError, match=f"^{name}= is empty\n"):
        parse_overrides({name: ""})
