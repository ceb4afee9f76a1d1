"""Values given on the command line, over those of the recipe.

    target=rv32-rvp                     the target
    model=path/to/x.tflite              a file (relative to the project's root), or `model=zoo:ds_cnn`
    set=stages.simulate.inputs.seed=3   any value: a dotted path (list items by number), `=`, a YAML value
    set=stages.a.x=1,stages.b.y=[1,2]   several, separated by `,` or `;` outside brackets and quotes

The order above is the order in which they apply.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.document import YamlPath, parse_value
from pipeline.errors import RecipeError

VARIABLES = ("target", "model", "set")
_OPEN, _CLOSE = "[{(", "]})"


@dataclass(frozen=True)
class Override:
    """One value and where it goes; `text` is what the user typed.

    A value from a recipe's `matrix` has the `place` where it was written. `whole` is the path that was asked for, of
    which `path` is a part when what is above it was not there before.
    """

    text: str
    path: YamlPath
    value: Any
    place: YamlPath = ()
    whole: YamlPath = ()


def parse_overrides(variables: Mapping[str, str]) -> list[Override]:
    """Overrides from `target`, `model` and `set`, in the order in which they apply. Raises RecipeError."""
    for name in VARIABLES:
        if name in variables and not variables[name].strip():
            raise RecipeError(f"{name}= is empty", hint="give a value, or leave it out")
    found = []
    if "target" in variables:
        found.append(Override(f"target={variables['target']}", ("target",), variables["target"]))
    if "model" in variables:
        text = variables["model"]
        if re.match(r"https?:", text.strip()):
            hint = "give both: set='model={url: \"" + text.strip() + "\", sha256: …}'"
            raise RecipeError(f"model={text}: a download needs its sha256", hint=hint)
        found.append(Override(f"model={text}", ("model",), model_entry(text)))
    for part in _split(variables.get("set", "")):
        found.append(_assignment(part))
    return found


def model_entry(text: str) -> dict[str, str]:
    """The model entry that `model=text` means."""
    return {"zoo": text.removeprefix("zoo:")} if text.startswith("zoo:") else {"file": text}


def yaml_path(text: str) -> YamlPath:
    """`stages.tensorize.rules.0.kernel` as a path; list items are numbers."""
    return tuple(int(part) if part.isdigit() else part for part in text.split("."))


def apply_overrides(data: Any, overrides: list[Override]) -> tuple[Any, list[Override]]:
    """`data` with the overrides in it, and the overrides with the path of the topmost value that each one put there.

    Mappings on the way are created; a list item must exist. Raises RecipeError naming the override.
    """
    placed = []
    for override in overrides:
        data, depth = _put(data, override, 0)
        placed.append(replace(override, path=override.path[: depth + 1], whole=override.path))
    return data, placed


def _put(node: Any, override: Override, depth: int) -> tuple[Any, int]:
    part, last = override.path[depth], depth == len(override.path) - 1
    if isinstance(node, list):
        if not (isinstance(part, int) and part < len(node)):
            where = ".".join(map(str, override.path[:depth]))
            raise RecipeError(f"{override.text}: {where} is a list of {len(node)} items; '{part}' is none of them")
        child: Any = node[part]
    elif isinstance(node, dict):
        part = str(part)
        child = node.get(part)
    else:
        where = ".".join(map(str, override.path[:depth]))
        raise RecipeError(f"{override.text}: {where} is a single value, it has no '{part}'")
    if last:
        child, placed = override.value, depth
    elif child is None:
        # Everything below is new: an unknown key on the way is this override's mistake.
        child, placed = _put({}, override, depth + 1)[0], depth
    else:
        child, placed = _put(child, override, depth + 1)
    if isinstance(node, list):
        return [*node[: int(part)], child, *node[int(part) + 1 :]], placed
    return {**node, part: child}, placed


def _assignment(text: str) -> Override:
    path, equals, value = text.partition("=")
    parts = path.strip().split(".")
    if not equals or not all(parts):
        raise RecipeError(
            f"set={text}: is not PATH=VALUE", hint="such as set=stages.simulate.inputs.seed=3; put lists in brackets"
        )
    try:
        parsed = parse_value(value)
    except ValueError as error:
        raise RecipeError(f"set={text}: the value is not YAML: {error}") from None
    return Override(f"set={text}", yaml_path(".".join(parts)), parsed)


def _split(text: str) -> list[str]:
    """Pieces between commas and semicolons that stand outside brackets and quotes."""
    pieces, start, depth, quote = [], 0, 0, ""
    for index, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in _OPEN:
            depth += 1
        elif letter in _CLOSE:
            depth -= 1
        elif letter in ",;" and depth == 0:
            pieces.append(text[start:index])
            start = index + 1
    pieces.append(text[start:])
    return [piece.strip() for piece in pieces if piece.strip()]
