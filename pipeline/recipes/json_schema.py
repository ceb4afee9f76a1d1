"""The recipe's JSON Schema, for editors (yaml-language-server documents draft 7) and for "did you mean"."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from pipeline.documents.document import YamlPath
from pipeline.plugins.registry import Registry
from pipeline.project import Project
from pipeline.recipes.recipe import MODEL_SOURCES, Recipe, recipe_model
from stages.models.spec import option_names

SCHEMA = "recipe.schema.json"
DRAFT = "http://json-schema.org/draft-07/schema#"
_LEVELS = 4  # of mappings in a recipe: stages.quantize.data.files
_MOST_PLACES = 3


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


def known_keys(schema: dict[str, Any], path: YamlPath, written: Mapping[str, Any] | None = None) -> list[str]:
    """The keys that the mapping at `path` may have, in the order declared; none when it has no fixed keys.

    Of a model they are those of its kind, and of its operator, which the keys and values that are `written` tell.
    """
    written, variants = written or {}, _at(schema, path)
    kinds = [source for source in MODEL_SOURCES if source in written] if path == ("model",) else []
    if kinds:
        variants = [variant for variant in variants if kinds[0] in variant.get("properties", {})]
    found = dict.fromkeys(key for variant in variants for key in variant.get("properties", {}))
    own = option_names(written["op"]) if kinds == ["op"] and isinstance(written["op"], str) else None
    return [key for key in found if own is None or key in own]


def model_kinds_with(schema: dict[str, Any], key: str) -> list[str]:
    """The kinds of models that have a key: `file`, `url`, `zoo`, `op`."""
    having = [variant["properties"] for variant in _at(schema, ("model",)) if key in variant.get("properties", {})]
    return [source for source in MODEL_SOURCES if any(source in properties for properties in having)]


def nearest_places(schema: dict[str, Any], path: YamlPath, most: int) -> list[str]:
    """Where the last word of `path`, which is no key there, is one: the nearest places, such as `stages.tensorize`.

    `most` is how many steps they may be away, out of a mapping or into one. None where there are many.
    """
    *above, key = path
    below = (tuple(above), _at(schema, tuple(above)), 2)
    found = dict.fromkeys(
        place
        for start, variants, levels in (below, ((), [*_variants(schema, schema)], _LEVELS))
        for place in _paths(schema, variants, start, levels)
        if place[-1] == key
    )
    distances = {place: _distance(tuple(above), place[:-1]) for place in found}
    least = min(distances.values(), default=most + 1)
    nearest = [".".join(map(str, place)) for place, distance in distances.items() if distance == least <= most]
    return nearest if len(nearest) <= _MOST_PLACES else []


def _distance(one: YamlPath, other: YamlPath) -> int:
    """How many steps lead from a mapping to another: out of some, into others."""
    common = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return len(one) + len(other) - 2 * common


def _paths(
    schema: dict[str, Any], variants: Iterable[dict[str, Any]], above: YamlPath, levels: int
) -> Iterator[YamlPath]:
    """The paths of all keys of a mapping and of the mappings in it, so many levels deep."""
    for variant in variants:
        for name, child in variant.get("properties", {}).items():
            yield (*above, name)
            # The options of a stage, not of those that may be used in its place.
            inside = child["anyOf"][0] if above == ("stages",) else child
            if levels > 1:
                yield from _paths(schema, _variants(schema, inside), (*above, name), levels - 1)


def _at(schema: dict[str, Any], path: YamlPath) -> list[dict[str, Any]]:
    """What a value at `path` may be."""
    nodes = [schema]
    if path[:1] == ("stages",) and len(path) > 1:
        # The options of this stage, not of those that may be used in its place.
        entries = schema["properties"]["stages"]["properties"]
        nodes, path = [entries[path[1]]["anyOf"][0]] if path[1] in entries else [], path[2:]
    for part in path:
        nodes = [child for node in nodes for child in _children(schema, node, part)]
    return [variant for node in nodes for variant in _variants(schema, node)]


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
    return project.root / "pipeline" / SCHEMA if project.is_standalone else project.root / SCHEMA
