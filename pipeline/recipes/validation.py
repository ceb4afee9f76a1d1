"""What pydantic finds wrong in a recipe, in one message in the user's words, at the place that is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pipeline.documents.document import YamlPath
from pipeline.documents.sources import Sources, has_part
from pipeline.errors import RecipeError, list_known
from stages.messages import escape
from stages.messages.wording import as_yaml, did_you_mean, in_yaml_words

# A limit that pydantic writes with all its digits, 2^-126 and 2^128.
_DIGITS = re.compile(r"\b0\.0{9}\d+|\b\d{17,}(?:\.\d+)?\b")
_PLACES = 3  # of further mistakes, that are told
# What the patterns of recipe keys mean, for those who do not read regular expressions.
_PATTERNS = {
    r"^[0-9a-f]{64}$": "64 hexadecimal digits (0-9, a-f)",
    r"^[A-Za-z_][A-Za-z0-9_.-]*$": "letters, digits, and _ . - after the first",
}


def validation_error(
    error: ValidationError, data: Any, sources: Sources, schema: dict[str, Any], targets: Iterable[str] = ()
) -> RecipeError:
    """The deepest of pydantic's errors, as a union complains once per variant, and how many other places are wrong."""
    located = [((*_yaml_path(detail, data), *_blamed(detail)), detail) for detail in error.errors(include_url=False)]
    # A misspelt key is also a missing one: the key that is there is the one to show.
    path, detail = max(located, key=lambda pair: (len(pair[0]), pair[1]["type"] == "extra_forbidden"))
    others = [
        other
        for other, also in located
        if other != path and not (also["type"] == "missing" and other[:-1] == path[:-1])
    ]
    message, key, hint = _describe(detail, path, schema, _used(path, data), data)
    if detail["type"] == "missing" and path == ("target",):
        hint = list_known("targets", targets)
    if detail["type"] in ("string_type", "model_source") and path in (("target",), ("model",)):
        hint = _several(path[0], detail["input"]) or hint
    beside = detail["ctx"]["beside"] if detail["type"] == "mistake" else ()
    if beside:
        hint = f"{beside[-1]} is at {sources.location((*path[: len(path) - len(_blamed(detail))], *beside))}"
    # What several use by an alias was written once.
    found = dict.fromkeys(map(sources.location, islice(dict.fromkeys(others), 100)))
    places = [place for place in found if place != sources.location(path)]
    if places:
        more = f"and {len(places)} more {'mistake' if len(places) == 1 else 'mistakes'}"
        shown = [place for place in places if place][:_PLACES]
        more += f", {'at' if len(shown) == len(places) else 'such as at'} {', '.join(shown)}" if shown else ""
        hint = f"{hint}; {more}" if hint else more
    message, _, below = message.partition("\n")
    return sources.error(message, path, key=key, hint="\n".join(part for part in (below, hint) if part))


def _yaml_path(detail: ErrorDetails, data: Any) -> YamlPath:
    """pydantic's location without the names of union variants."""
    path: list[str | int] = []
    location = list(detail["loc"])
    for index, part in enumerate(location):
        if location[:index] == ["model"] or (index == 2 and location[0] == "stages"):
            # The variant's name; it may also be a key of the variant, as `url` is.
            continue
        if has_part(data, part):
            data = data[part]
        elif not (index == len(location) - 1 and detail["type"] == "missing"):
            continue
        path.append(part)
    return tuple(path)


def _blamed(detail: ErrorDetails) -> YamlPath:
    """Which value below its location a stages.options.strict_model.mistake blames."""
    at: YamlPath = detail["ctx"]["at"] if detail["type"] == "mistake" else ()
    return at


def _used(path: YamlPath, data: Any) -> YamlPath:
    """The path with the stage that runs in place of the name that the recipe has for it."""
    if path[:1] == ("stages",) and len(path) > 1 and isinstance(data["stages"][path[1]], dict):
        return ("stages", data["stages"][path[1]].get("use", path[1]), *path[2:])
    return path


def _describe(
    detail: ErrorDetails, path: YamlPath, schema: dict[str, Any], used: YamlPath, data: Any
) -> tuple[str, bool, str]:
    """A message, whether it is about the key rather than the value, and a hint. In the schema the path is `used`."""
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
        # Of numbers none is another's misspelling.
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
    told = kind in ("value_error", "model_source", "stage_mapping", "matrix_empty")
    value = "" if told else _shown_value(detail["input"])
    return f"{where}: {text}{value}", False, ""


def _several(name: str | int, value: Any) -> str:
    """The hint for a list where one target or model is needed."""
    if not isinstance(value, list):
        return ""
    return f"for several a recipe needs a matrix with the axis {name}: `matrix: {{{name}: [...]}}`"


def _unknown_key(name: str, path: YamlPath, schema: dict[str, Any], used: YamlPath, data: Any) -> tuple[str, list[str]]:
    """A message about a key that is none, and the keys that may stand in its place."""
    from pipeline.recipes.json_schema import known_keys, model_kinds_with, nearest_places

    for part in path[:-1]:
        data = data[part]
    known, key = known_keys(schema, used[:-1], data), str(path[-1])
    guess = did_you_mean(name, known)
    if path[:-1] == ("model",) and (kinds := model_kinds_with(schema, key)):
        guess = f"; it is of a model by {' or '.join(kinds)}"
    elif (places := nearest_places(schema, used, 1 if guess else 2)) and ".".join(map(str, path)) not in places:
        guess = f"; it is {' or '.join(places)}"
        if places == [key]:
            guess = f"; it stands at the top, not in {escape.name(str(path[-2]))}"
    return f"unknown key '{name}'{guess}", known


def _shown_value(value: Any) -> str:
    if isinstance(value, str | int | float | bool):
        return f", is {escape.name(as_yaml(value))}"
    if value is None:
        return ", is empty"
    return ", is a list" if isinstance(value, list | tuple) else ", is a mapping" if isinstance(value, dict) else ""
