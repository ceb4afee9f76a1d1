"""The recipe's JSON Schema, for editors (yaml-language-server documents draft 7) and for "did you mean"."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from pipeline.plugins.registry import Registry
from pipeline.project import Project
from pipeline.recipes.recipe import Recipe, recipe_model

SCHEMA = "recipe.schema.json"
DRAFT = "http://json-schema.org/draft-07/schema#"


class _Draft7(GenerateJsonSchema):
    """pydantic emits 2020-12; in draft 7 a fixed tuple is `items: […]` with `additionalItems`, not `prefixItems`."""

    schema_dialect = DRAFT

    def tuple_schema(self, schema: core_schema.TupleSchema) -> JsonSchemaValue:
        result = super().tuple_schema(schema)
        if "prefixItems" in result:
            rest = result.pop("items", None)
            result["items"] = result.pop("prefixItems")
            if rest is not None or result.get("maxItems") is not None:
                result["additionalItems"] = rest if rest is not None else False
        return result


@cache
def recipe_schema(registry: Registry) -> dict[str, Any]:
    """The schema of a recipe as written in YAML: `stages` is a mapping, and a recipe that extends may be partial."""
    schema = recipe_model(registry).model_json_schema(
        ref_template="#/definitions/{model}", schema_generator=_Draft7, by_alias=True
    )
    schema["definitions"] = schema.pop("$defs", {})
    for definition in schema["definitions"].values():
        # The discriminator comes from the mapping's key or from `use`; nobody writes it.
        kind = definition.get("properties", {}).get("kind", {}).get("const")
        if kind is not None:
            del definition["properties"]["kind"]
            definition["properties"] |= _placement(kind)
    _describe_matrix(schema)
    complete = [field.alias or name for name, field in Recipe.model_fields.items() if field.is_required()]
    schema["required"] = ["schema"]
    schema["anyOf"] = [{"required": ["extends"]}, {"required": ["matrix"]}, {"required": complete}]
    return {"$schema": DRAFT, "title": "Firmline recipe", **{k: v for k, v in schema.items() if k != "title"}}


def _placement(kind: str) -> dict[str, Any]:
    """What a recipe may say of a stage beside its options."""
    after = "The stage runs right after the one named here; one of the usual chain is moved there."
    return {
        "after": {"type": "string", "description": after},
        "use": {"const": kind, "description": "Kind of the stage that runs under this name, if it is another."},
    }


def _describe_matrix(schema: dict[str, Any]) -> None:
    """What the matrix model does not say: the form of an axis and its values, and which further keys there may be."""
    matrix = schema["definitions"]["Matrix"]
    properties = schema["properties"]
    entry = {name: value for name, value in properties["model"].items() if name != "description"}
    values: dict[str, dict[str, Any]] = {"target": {"type": "string"}, "model": {"anyOf": [{"type": "string"}, entry]}}
    for name, value in values.items():
        described = matrix["properties"][name].get("description", "")
        matrix["properties"][name] = {**_axis(value), "description": described}
    matrix["patternProperties"] = {r"^(stages|model|memory)\.": _axis({})}
    matrix["additionalProperties"] = False


def _axis(value: dict[str, Any]) -> dict[str, Any]:
    named = {"type": "object", "minProperties": 1, "additionalProperties": value}
    return {"anyOf": [{"type": "array", "minItems": 1, "items": value}, named]}


def schema_text(registry: Registry) -> str:
    """The content of pipeline/recipe.schema.json."""
    return json.dumps(recipe_schema(registry), indent=2, sort_keys=True) + "\n"


def known_keys(schema: dict[str, Any], path: tuple[str | int, ...]) -> list[str]:
    """The keys that the mapping at `path` may have, in the order declared; none when it has no fixed keys."""
    nodes = [schema]
    if path[:1] == ("stages",) and len(path) > 1:
        # The options of this stage, not of those that may be used in its place.
        entries = schema["properties"]["stages"]["properties"]
        nodes, path = [entries[path[1]]["anyOf"][0]] if path[1] in entries else [], path[2:]
    for part in path:
        nodes = [child for node in nodes for child in _children(schema, node, part)]
    found: dict[str, None] = {}
    for node in nodes:
        for variant in _variants(schema, node):
            found.update(dict.fromkeys(variant.get("properties", {})))
    return list(found)


def _variants(schema: dict[str, Any], node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "$ref" in node:
        target: Any = schema
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        yield from _variants(schema, target)
        return
    yield node
    for word in ("anyOf", "oneOf", "allOf"):
        for variant in node.get(word, ()):
            yield from _variants(schema, variant)


def _children(schema: dict[str, Any], node: dict[str, Any], part: str | int) -> Iterator[dict[str, Any]]:
    for variant in _variants(schema, node):
        if isinstance(part, str):
            child = variant.get("properties", {}).get(part, variant.get("additionalProperties"))
        else:
            items = variant.get("items")
            child = items[part] if isinstance(items, list) and part < len(items) else items
        if isinstance(child, dict):
            yield child


def schema_file(project: Project) -> Path:
    """Where editors find the schema of a project's recipes: in Firmline's own repository beside the code."""
    return project.root / "pipeline" / SCHEMA if project.alone else project.root / SCHEMA
