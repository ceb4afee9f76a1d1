"""The schema that editors read."""

from pipeline.plugins.registry import default_registry
from pipeline.project import Project
from pipeline.recipes.json_schema import recipe_schema, schema_file, schema_text
from stages.support.system.installation import INSTALLATION as ROOT
from tests.unit.pipeline.fake_stages import OtherEmit, Strip, fake_registry

SCHEMA = recipe_schema(fake_registry())


def test_written_schema_is_current() -> None:
    assert schema_file(Project(ROOT)).read_text() == schema_text(default_registry()), "run `doit schema`"


def test_every_recipe_names_the_schema() -> None:
    recipes = sorted((ROOT / "recipes").rglob("*.yaml"))
    assert recipes
    for path in recipes:
        start, _, schema = path.read_text().splitlines()[0].partition("$schema=")
        assert start == "# yaml-language-server: "
        assert (path.parent / schema).resolve() == ROOT / "pipeline/recipe.schema.json", path.name


def test_a_stage_can_be_disabled_or_replaced() -> None:
    stages = recipe_schema(fake_registry(Strip(), OtherEmit()))["properties"]["stages"]["properties"]
    assert {"const": False, "description": "The stage is disabled."} in stages["compile"]["anyOf"]
    # The options of a replacement require `use`.
    replacement = {"$ref": "#/definitions/Other_EmitStage"}
    assert {"allOf": [replacement, {"required": ["use"]}]} in stages["emit"]["anyOf"]
    assert replacement in stages["other_emit"]["anyOf"]


def test_a_recipe_that_extends_may_be_partial() -> None:
    assert SCHEMA["required"] == ["schema"]
    assert SCHEMA["anyOf"] == [
        {"required": ["extends"]},
        {"required": ["matrix"]},
        {"required": ["schema", "target", "model"]},
    ]
