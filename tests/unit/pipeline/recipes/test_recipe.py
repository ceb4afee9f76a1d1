"""The recipe model itself, without the loader."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.recipes.recipe import Recipe, recipe_model
from tests.unit.pipeline.fake_stages import CompileConfig, EmitConfig, fake_registry

MODEL = recipe_model(fake_registry())
RECIPE: dict[str, Any] = {"schema": 1, "name": "demo", "target": "host", "model": {"zoo": "ds_cnn"}}


def test_stages_are_told_apart_by_kind() -> None:
    recipe = MODEL.model_validate({**RECIPE, "stages": {"compile": {"opt": "O3"}, "emit": None}})
    assert isinstance(recipe, Recipe)
    assert {name: type(config).__mro__[1] for name, config in recipe.stages.items()} == {
        "compile": CompileConfig,
        "emit": EmitConfig,
    }
    assert isinstance(recipe.config("emit"), EmitConfig)
    assert recipe.config("import") is None


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"stages": {"link": {}}}, "union_tag_invalid"),
        ({"stages": {"emit": {"kind": "compile"}}}, "stage_mapping"),
        ({"stages": ["emit"]}, "stage_mapping"),
        ({"stages": {"emit": {"unroll": "4"}}}, "int_type"),
        ({"extra": 1}, "extra_forbidden"),
        ({"schema": "1"}, "literal_error"),
        ({"model": "ds_cnn"}, "model_source"),
        ({"model": {}}, "model_source"),
        ({"model": {"zoo": "a", "file": "b"}}, "model_source"),
        ({"model": {"url": "http://x"}}, "missing"),
    ],
)
def test_refused(change: dict[str, Any], kind: str) -> None:
    with pytest.raises(ValidationError) as caught:
        MODEL.model_validate({**RECIPE, **change})
    assert [error["type"] for error in caught.value.errors()] == [kind]


def test_error_stays_with_its_stage() -> None:
    with pytest.raises(ValidationError) as caught:
        MODEL.model_validate({**RECIPE, "stages": {"compile": {}, "emit": {"unrol": 1}}})
    assert [error["loc"] for error in caught.value.errors()] == [("stages", "emit", "emit", "unrol")]
