"""Validation errors of pydantic as one message in the user's words, with position."""

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pipeline.documents.chains import networks_of
from pipeline.documents.document import YamlPath
from pipeline.documents.sources import Sources, has_part
from pipeline.errors import RecipeError, list_known
from stages.support.messages import escape
from stages.support.messages.wording import as_yaml, did_you_mean, in_yaml_words

# Numbers that pydantic prints with all digits, such as 2^-126 and 2^128.
_DIGITS = re.compile(r"\b0\.0{9}\d+|\b\d{17,}(?:\.\d+)?\b")
_MAX_PLACES = 3  # positions of further mistakes in a message
# Descriptions of regular expressions.
_PATTERNS = {
    r"^[0-9a-f]{64}$": "64 hexadecimal digits (0-9, a-f)",
    r"^[A-Za-z_][A-Za-z0-9_.-]*$": "letters, digits, and _ . - after the first",
}


def validation_error(
    error: ValidationError, data: Any, sources: Sources, schema: dict[str, Any], targets: Iterable[str] = ()
) -> RecipeError:
    """Return one error for all of pydantic's, with the positions of further mistakes.

    The reported error is the deepest, since a union reports one error per member.
    """
    located = [
        ((*_yaml_path(detail, data), *_mistake_path(detail)), detail) for detail in error.errors(include_url=False)
    ]
    # A misspelt key causes two errors, unknown and missing key. The unknown key is shown.
    path, detail = max(located, key=lambda pair: (len(pair[0]), pair[1]["type"] == "extra_forbidden"))
    other_paths = [
        other
        for other, other_detail in located
        if other != path and not (other_detail["type"] == "missing" and other[:-1] == path[:-1])
    ]
    message, key, hint = _describe(detail, path, schema, _schema_path(path, data), data)
    if detail["type"] == "missing" and path == ("target",):
        hint = list_known("targets", targets)
    if detail["type"] in ("string_type", "model_source") and path in (("target",), ("model",)):
        hint = _matrix_hint(path[0], detail["input"]) or hint
    beside = detail["ctx"]["beside"] if detail["type"] == "mistake" else ()
    if beside:
        named = beside[-1] if isinstance(beside[-1], str) else ".".join(map(str, beside[-2:]))
        hint = f"{named} is at {sources.location((*path[: len(path) - len(_mistake_path(detail))], *beside))}"
    # Aliases share a position.
    locations = dict.fromkeys(map(sources.location, islice(dict.fromkeys(other_paths), 100)))
    places = [place for place in locations if place != sources.location(path)]
    if places:
        summary = f"and {len(places)} more {'mistake' if len(places) == 1 else 'mistakes'}"
        shown = [place for place in places if place][:_MAX_PLACES]
        summary += f", {'at' if len(shown) == len(places) else 'such as at'} {', '.join(shown)}" if shown else ""
        hint = f"{hint}; {summary}" if hint else summary
    message, _, rest = message.partition("\n")
    return sources.error(message, path, key=key, hint="\n".join(part for part in (rest, hint) if part))


def _yaml_path(detail: ErrorDetails, data: Any) -> YamlPath:
    """Return pydantic's location without the names of union members."""
    path: list[str | int] = []
    location = list(detail["loc"])
    for index, part in enumerate(location):
        if (
            location[:index] == ["model"]
            or (index == 2 and location[0] == "stages")
            or _is_chain_part(location[:index])
        ):
            # The name of the union member, which may also be a key in it, as `url`.
            continue
        if has_part(data, part):
            data = data[part]
        elif not (index == len(location) - 1 and detail["type"] == "missing"):
            continue
        path.append(part)
    return tuple(path)


def _is_chain_part(location: list[str | int]) -> bool:
    """Return whether a location of pydantic is a part of a chain."""
    return location[:3] == ["model", "chain", "chain"] and len(location) == 4


def _mistake_path(detail: ErrorDetails) -> YamlPath:
    """Return the path of the value that a `strict_model.mistake` refers to."""
    at: YamlPath = detail["ctx"]["at"] if detail["type"] == "mistake" else ()
    return at


def _schema_path(path: YamlPath, data: Any) -> YamlPath:
    """Return the path with the kind of the stage instead of its name in the recipe."""
    if path[:1] == ("stages",) and len(path) > 1 and isinstance(data["stages"][path[1]], dict):
        return ("stages", data["stages"][path[1]].get("use", path[1]), *path[2:])
    return path


def _describe(
    detail: ErrorDetails, path: YamlPath, schema: dict[str, Any], used: YamlPath, data: Any
) -> tuple[str, bool, str]:
    """Return message, whether it refers to the key, and hint. `used` is the path in the schema."""
    kind, name = detail["type"], escape.name(str(path[-1])) if path else ""
    where = ".".join(escape.name(str(part)) for part in path)
    if kind == "extra_forbidden":
        message, known = _unknown_key(name, path, schema, used, data)
        return message, True, list_known("keys", known)
    if kind == "missing" and isinstance(path[-1], int):
        items = f"{path[-1]} {'item' if path[-1] == 1 else 'items'}"
        return f"{where.rpartition('.')[0]}: should have more than {items}", False, ""
    if kind == "missing":
        inside = f" in {where.rpartition('.')[0]}" if "." in where else ""
        return f"missing key '{name}'{inside}", False, ""
    if kind == "mistake":
        return f"{where}: {detail['ctx']['message']}", detail["ctx"]["key"] or detail["loc"][-1:] == ("[key]",), ""
    if kind in ("model_attributes_type", "model_type", "dict_type", "union_tag_not_found"):
        return f"{where or 'the file'}: should be a mapping{_shown_value(detail['input'])}", False, ""
    if kind == "literal_error":
        expected = in_yaml_words(detail.get("ctx", {}).get("expected", ""))
        choices = [choice.strip("'") for choice in expected.replace(" or ", ", ").split(", ")]
        if detail["input"] in choices:
            # `schema: "1"`
            return f"{where}: should be the number {detail['input']}, is the text '{detail['input']}'", False, ""
        # No suggestions for numbers.
        guess = did_you_mean(detail["input"], choices) if isinstance(detail["input"], str) else ""
        return f"{where}: should be {expected}{_shown_value(detail['input'])}{guess}", False, ""
    if kind in ("tuple_type", "list_type"):
        value = detail["input"]
        example = f" such as [{value}, {value}]" if type(value) in (int, float) else ""
        return f"{where}: should be a list{example}{_shown_value(value)}", False, ""
    if kind == "string_pattern_mismatch" and detail["ctx"]["pattern"] in _PATTERNS:
        return f"{where}: should be {_PATTERNS[detail['ctx']['pattern']]}{_shown_value(detail['input'])}", False, ""
    if kind in ("too_long", "too_short"):
        least, limits = kind == "too_short", detail["ctx"]
        bound = limits["min_length" if least else "max_length"]
        items = f"{bound} {'item' if bound == 1 else 'items'}"
        has = limits["actual_length"]
        return f"{where}: should have at {'least' if least else 'most'} {items}, has {has}", False, ""
    # pydantic says "Input should be …", "String should match …", "Value error, …".
    text = in_yaml_words(re.sub(r"^([A-Z]\w+ (?=should)|Value error, )", "", detail["msg"]))
    if kind.startswith(("greater_than", "less_than")):
        text = _DIGITS.sub(lambda number: f"{float(number[0]):.6g}", text)
    has_value = kind in ("value_error", "model_source", "stage_mapping", "matrix_empty")
    value = "" if has_value else _shown_value(detail["input"])
    return f"{where}: {text}{value}", False, ""


def _matrix_hint(name: str | int, value: Any) -> str:
    """Return the hint for a list in place of one target or model."""
    if not isinstance(value, list):
        return ""
    return f"several values need a matrix: `matrix: {{{name}: [...]}}`"


def _unknown_key(name: str, path: YamlPath, schema: dict[str, Any], used: YamlPath, data: Any) -> tuple[str, list[str]]:
    """Return the message for an unknown key, and the valid keys."""
    from pipeline.recipes.json_schema import known_keys, model_kinds_with, nearest_places

    for part in path[:-1]:
        data = data[part]
    known, key = known_keys(schema, used[:-1], data), str(path[-1])
    guess = did_you_mean(name, known)
    if places := _of_networks(schema, path, data):
        guess = f"; it is {' or '.join(places)}"
    elif kinds := model_kinds_with(schema, used):
        guess = f"; it belongs to a {'model' if len(path) == 2 else 'part'} given by {' or '.join(kinds)}"
    elif (places := nearest_places(schema, used, 1 if guess else 2)) and ".".join(map(str, path)) not in places:
        guess = f"; it is {' or '.join(places)}"
        if places == [key]:
            guess = "; it is a top-level key"
    return f"unknown key '{name}'{guess}", known


def _of_networks(schema: dict[str, Any], path: YamlPath, model: Any) -> list[str]:
    """Return the paths of an option of `model` in the networks of a chain that have it."""
    from pipeline.recipes.json_schema import known_keys

    if path[:-1] != ("model",):
        return []
    places = [("model", "chain", at) for at in networks_of(model)]
    return [
        ".".join(map(str, (*place, path[-1])))
        for place in places
        if path[-1] in known_keys(schema, place, model["chain"][place[-1]])
    ]


def _shown_value(value: Any) -> str:
    if isinstance(value, str | int | float | bool):
        return f", is {escape.name(as_yaml(value))}"
    if value is None:
        return ", is empty"
    return ", is a list" if isinstance(value, list | tuple) else ", is a mapping" if isinstance(value, dict) else ""
