"""JSON Schema of recipes (draft 7), for editors and for suggestions in messages."""

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
from pipeline.recipes.model_entry import MODEL_SOURCES
from pipeline.recipes.recipe import Recipe, recipe_model
from stages.ir.models.chain.spec import PART_SOURCES
from stages.ir.models.spec import option_names

SCHEMA = "recipe.schema.json"
DRAFT = "http://json-schema.org/draft-07/schema#"
_MAX_DEPTH = 4  # nested mappings: stages.quantize.data.files
_MAX_PLACES = 3


class _Draft7(GenerateJsonSchema):
    """Generator for draft 7, which describes fixed tuples with `items`, not `prefixItems`."""

    schema_dialect = DRAFT

    def tuple_schema(self, schema: core_schema.TupleSchema) -> JsonSchemaValue:
        """Return the schema of a tuple in the form of draft 7."""
        result = super().tuple_schema(schema)
        if "prefixItems" in result:
            rest = result.pop("items", None)
            result["items"] = result.pop("prefixItems")
            if rest is not None or result.get("maxItems") is not None:
                result["additionalItems"] = rest if rest is not None else False
        return result


@cache
def recipe_schema(registry: Registry) -> dict[str, Any]:
    """Return the JSON Schema of a recipe file; a recipe with `extends` may be partial."""
    schema = recipe_model(registry).model_json_schema(
        ref_template="#/definitions/{model}", schema_generator=_Draft7, by_alias=True
    )
    schema["definitions"] = schema.pop("$defs", {})
    stages = {stage.kind for stage in registry}
    for definition in schema["definitions"].values():
        # The discriminator of a stage comes from the key or from `use`, not from a written `kind`.
        kind = definition.get("properties", {}).get("kind", {}).get("const")
        if kind in stages:
            del definition["properties"]["kind"]
            definition["properties"] |= _placement(kind)
    _describe_matrix(schema)
    _share_options(schema["definitions"])
    complete = [field.alias or name for name, field in Recipe.model_fields.items() if field.is_required()]
    schema["required"] = ["schema"]
    schema["anyOf"] = [{"required": ["extends"]}, {"required": ["matrix"]}, {"required": complete}]
    return {"$schema": DRAFT, "title": "Firmline recipe", **{k: v for k, v in schema.items() if k != "title"}}


def _placement(kind: str) -> dict[str, Any]:
    """Return the schema of `after` and `use`, the placement of a stage."""
    after = "Name of the stage after which this stage runs. A stage of the default sequence is moved."
    return {
        "after": {"type": "string", "description": after},
        "use": {"const": kind, "description": "Kind of the stage that replaces this stage."},
    }


def _describe_matrix(schema: dict[str, Any]) -> None:
    """Add the schema of axes, their values and dotted paths, which the pydantic model lacks."""
    matrix = schema["definitions"]["Matrix"]
    model = {"anyOf": [{"type": "string"}, {"$ref": "#/properties/model"}]}
    values: dict[str, dict[str, Any]] = {"target": {"type": "string"}, "model": model}
    for name, value in values.items():
        described = matrix["properties"][name].get("description", "")
        matrix["properties"][name] = {**_axis(value), "description": described}
    matrix["patternProperties"] = {r"^(stages|model|memory)\.": _axis({})}
    matrix["additionalProperties"] = False


def _axis(value: dict[str, Any]) -> dict[str, Any]:
    named = {"type": "object", "minProperties": 1, "additionalProperties": value}
    return {"anyOf": [{"type": "array", "minItems": 1, "items": value}, named]}


def _share_options(definitions: dict[str, Any]) -> None:
    """Replace an option's schema by a reference to the same option of an earlier class."""
    places: dict[tuple[str, str], str] = {}
    for owner, definition in sorted(definitions.items()):
        for name, option in definition.get("properties", {}).items():
            place = f"#/definitions/{owner}/properties/{name}"
            first = places.setdefault((name, json.dumps(option, sort_keys=True)), place)
            if first != place and not option.keys() & {"const", "$ref"}:
                definition["properties"][name] = {"$ref": first}


def schema_text(registry: Registry) -> str:
    """Return the content of recipe.schema.json."""
    return json.dumps(recipe_schema(registry), indent=2, sort_keys=True) + "\n"


def known_keys(schema: dict[str, Any], path: YamlPath, written: Mapping[str, Any] | None = None) -> list[str]:
    """Return the keys of the mapping at `path`, as declared; [] if it has no fixed keys.

    written: content of the mapping; it selects the kind, and for a model the operator.
    """
    written, variants = written or {}, _schemas_at(schema, path)
    kinds = [source for source in _sources(path) if source in written]
    if kinds:
        variants = [variant for variant in variants if kinds[0] in variant.get("properties", {})]
    variants = [variant for variant in variants if _is_of_kind(variant, written)] or variants
    keys = dict.fromkeys(key for variant in variants for key in variant.get("properties", {}))
    options = option_names(written["op"]) if kinds == ["op"] and isinstance(written["op"], str) else None
    return [key for key in keys if options is None or key in options]


def _is_of_kind(variant: dict[str, Any], written: Mapping[str, Any]) -> bool:
    """Return whether no constant of a variant, such as its `kind`, contradicts the mapping."""
    constants = {name: child["const"] for name, child in variant.get("properties", {}).items() if "const" in child}
    return all(written.get(name, value) == value for name, value in constants.items())


def _sources(path: YamlPath) -> tuple[str, ...]:
    """Return the keys that select the kind of a model or chain part; () for other mappings."""
    if path[:2] == ("model", "chain") and len(path) == 3:
        return (*MODEL_SOURCES, *PART_SOURCES)
    return MODEL_SOURCES if path == ("model",) else ()


def model_kinds_with(schema: dict[str, Any], path: YamlPath) -> list[str]:
    """Return the kinds of models, or of a chain's parts, that have the last key of `path`.

    Kinds are `file`, `url`, `zoo` and `op`.
    """
    *above, key = path
    variants = [
        variant["properties"] for variant in _schemas_at(schema, tuple(above)) if key in variant.get("properties", {})
    ]
    return [source for source in _sources(tuple(above)) if any(source in properties for properties in variants)]


def nearest_places(schema: dict[str, Any], path: YamlPath, most: int) -> list[str]:
    """Return the nearest valid paths for the last key of `path`.

    most: maximum distance in steps into or out of a mapping. Returns [] for more than three places.
    """
    *above, key = path
    around = (tuple(above), _schemas_at(schema, tuple(above)), 2)
    places = dict.fromkeys(
        place
        for start, variants, levels in (around, ((), [*_variants(schema, schema)], _MAX_DEPTH))
        for place in _key_paths(schema, variants, start, levels)
        if place[-1] == key
    )
    distances = {place: _distance(tuple(above), place[:-1]) for place in places}
    least = min(distances.values(), default=most + 1)
    nearest = [".".join(map(str, place)) for place, distance in distances.items() if distance == least <= most]
    return nearest if len(nearest) <= _MAX_PLACES else []


def _distance(first: YamlPath, second: YamlPath) -> int:
    """Return the number of steps between two mappings, out of one and into the other."""
    common = next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    return len(first) + len(second) - 2 * common


def _key_paths(
    schema: dict[str, Any], variants: Iterable[dict[str, Any]], above: YamlPath, levels: int
) -> Iterator[YamlPath]:
    """Yield the paths of all keys of a mapping and of nested mappings, to a depth of `levels`."""
    for variant in variants:
        for name, child in variant.get("properties", {}).items():
            yield (*above, name)
            # The options of the stage itself, not of its replacements.
            inside = child["anyOf"][0] if above == ("stages",) else child
            if levels > 1:
                yield from _key_paths(schema, _variants(schema, inside), (*above, name), levels - 1)


def _schemas_at(schema: dict[str, Any], path: YamlPath) -> list[dict[str, Any]]:
    """Return the schemas of the value at `path`."""
    nodes = [schema]
    if path[:1] == ("stages",) and len(path) > 1:
        # The options of the stage itself, not of its replacements.
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
    """Return the path of a project's recipe schema; in a clone it is below pipeline/."""
    return project.root / "pipeline" / SCHEMA if project.is_standalone else project.root / SCHEMA
