"""Overrides: command-line values that replace recipe values, applied in this order.

target=rv32-rvp                     the target; board= is an alias
model=path/to/x.tflite              a file (relative to the project's root), or `model=zoo:ds_cnn`
run_on=gdb://localhost:3333         a board instead of the simulator
set=stages.simulate.inputs.seed=3   any value: a dotted path (list items by index), `=`, a YAML value
set=stages.a.x=1,stages.b.y=[1,2]   several, separated by `,` or `;` outside brackets and quotes
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.documents.chains import networks_of, with_network
from pipeline.documents.document import YamlPath, parse_value
from pipeline.errors import RecipeError, list_known
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean

VARIABLES = ("target", "board", "model", "run_on", "set")
RECIPE_VARIABLES = ("recipe", *VARIABLES)
_OPEN, _CLOSE = "[{(", "]})"
_INDEX = re.compile(r"^[0-9]{1,9}$", re.ASCII)
_MAX_DEPTH = 30
# Keys that are evaluated before overrides: the reason and the alternative.
_FIXED = {
    "extends": (
        "extends cannot be overridden",
        "`doit new recipe NAME model=… extends=OTHER` writes a recipe that extends another",
    ),
    "name": ("a recipe has the name of its file", "copy or rename the file; NAME.yaml is the recipe NAME"),
    "schema": ("the schema version cannot be overridden", "remove it"),
}


@dataclass(frozen=True)
class Override:
    """A value and its path in the recipe.

    text: the override as typed.
    path: after `apply_overrides`, the path of the topmost value that the override created.
    matrix_path: the path of a value from the recipe's `matrix`, else ().
    requested_path: after `apply_overrides`, the path as typed.
    """

    text: str
    path: YamlPath
    value: Any
    matrix_path: YamlPath = ()
    requested_path: YamlPath = ()

    @property
    def display_text(self) -> str:
        """The override as typed, escaped for a message."""
        return escape.name(self.text, 120)


def check_assignments(arguments: Iterable[tuple[str, str]], known: Sequence[str] = RECIPE_VARIABLES) -> None:
    """Raise RecipeError for `name=value` arguments that are unknown, empty or contradictory."""
    values: dict[str, str] = {}
    for name, value in arguments:
        check_variables([name], known)
        if not value.strip(" \t,;"):
            raise RecipeError(f"{name}= is empty", hint="give a value, or remove it")
        if values.setdefault(name, value) != value:
            if name == "run_on":
                raise RecipeError("duplicate run_on=; a run uses one board", hint="remove one of them")
            combined = escape.name(f"{name}={values[name]},{value}")
            context = "in a recipe with a matrix " if name == "model" else ""
            effect = "assigns all of them" if name == "set" else "selects all of them"
            raise RecipeError(f"duplicate {name}=; {context}{combined} {effect}")


class OverridePathError(RecipeError):
    """An override with an invalid path; `reason` is the message without the override."""

    def __init__(self, override: Override, reason: str) -> None:
        super().__init__(f"{override.display_text}: {reason}")
        self.override = override
        self.reason = reason


def parse_overrides(variables: Mapping[str, str]) -> list[Override]:
    """Return the overrides in the order in which they apply. Raises RecipeError."""
    check_assignments((name, value) for name, value in variables.items() if name in VARIABLES)
    overrides = []
    if "target" in variables:
        overrides.append(Override(f"target={variables['target']}", ("target",), variables["target"]))
    if "board" in variables:
        if variables.get("target", variables["board"]) != variables["board"]:
            raise RecipeError(
                "target= and board= name different targets", hint="board= is an alias of target=; give one of them"
            )
        overrides = [Override(f"board={variables['board']}", ("target",), variables["board"])]
    if "run_on" in variables:
        text = f"run_on={variables['run_on']}"
        overrides.append(Override(text, ("stages", "simulate", "run_on"), variables["run_on"]))
        overrides.append(Override(text, ("stages", "compile", "host"), "debugger"))
    if "model" in variables:
        text = variables["model"]
        if re.match(r"https?:", text.strip()):
            hint = "give both: set='model={url: \"" + text.strip() + "\", sha256: …}'"
            raise RecipeError(f"model={escape.name(text)}: a download needs its sha256", hint=hint)
        overrides.append(Override(f"model={text}", ("model",), model_entry(text)))
    assigned: list[Override] = []
    for part in _split(variables.get("set", "")):
        assigned.append(_assignment(part))
        _check_replaced(assigned)
    return overrides + assigned


def with_assignments(text: str, values: Mapping[str, str]) -> str:
    """Return the text of `set=` with these values by path in place of its own."""
    paths = {yaml_path(path) for path in values}
    kept = [part for part in _split(text) if _assignment(part).path not in paths]
    return ",".join([*kept, *(f"{path}={value}" for path, value in values.items())])


def _check_replaced(assigned: Sequence[Override]) -> None:
    """Raise RecipeError if the last override replaces an earlier one."""
    *others, last = assigned
    for other in others:
        if other.path[: len(last.path)] == last.path and (other.path, other.value) != (last.path, last.value):
            path = escape.name(".".join(map(str, last.path)))
            if other.path == last.path:
                raise RecipeError(
                    f"{last.display_text}: duplicate override of {path}", hint=f"also set by {other.display_text}"
                )
            raise RecipeError(
                f"{last.display_text}: replaces the value of {other.display_text}", hint="reorder them, or remove one"
            )


def check_variables(names: Iterable[str], known: Iterable[str]) -> None:
    """Raise RecipeError for unknown `name=value` arguments."""
    known = list(known)
    for name in names:
        if name not in known:
            message = f"unknown argument '{escape.name(name)}='{did_you_mean(name, known)}"
            raise RecipeError(message, hint=list_known("arguments", known))


def check_single_model(overrides: Iterable[Override], root: Path) -> None:
    """Raise RecipeError for `model=a,b` without a matrix, unless it is the name of a file."""
    for override in overrides:
        text = override.text.removeprefix("model=")
        if override.path == ("model",) and "," in text and text != override.text and not (root / text).exists():
            message = f"'{escape.name(text)}' names several models; this needs a matrix with the axis model"
            raise RecipeError(f"{override.display_text}: {message}")


def model_entry(text: str) -> dict[str, str]:
    """Return the model entry for `model=text`."""
    return {"zoo": text.removeprefix("zoo:")} if text.startswith("zoo:") else {"file": text}


def yaml_path(text: str) -> YamlPath:
    """Split a dotted path such as `stages.emit.rules.0`; list indices become integers."""
    return tuple(int(part) if _INDEX.match(part) else part for part in text.split("."))


def each_target(variables: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the variables once for each target of `target=a,b` (or `board=`)."""
    key = "board" if "board" in variables else "target"
    if "," not in variables.get(key, ""):
        return [dict(variables)]
    names = dict.fromkeys(name.strip() for name in variables[key].split(",") if name.strip())
    return [{**variables, **({"target": name} if "target" in variables else {}), key: name} for name in names]


def apply_overrides(data: Any, overrides: list[Override]) -> tuple[Any, list[Override]]:
    """Apply overrides to a copy of `data`.

    Missing mappings on a path are created; list items must exist. Returns the new data, and the overrides with the
    path of the topmost value that each created. Raises OverridePathError.
    """
    placed = []
    for override in overrides:
        data, depth = _put(data, override, 0)
        placed.append(replace(override, path=override.path[: depth + 1], requested_path=override.path))
    return data, placed


def _put(node: Any, override: Override, depth: int) -> tuple[Any, int]:
    part, last = override.path[depth], depth == len(override.path) - 1
    if isinstance(node, list):
        if not (isinstance(part, int) and part < len(node)):
            where = ".".join(map(str, override.path[:depth]))
            name = escape.name(str(part))
            raise OverridePathError(override, f"{where} is a list of {len(node)} items, without an item '{name}'")
        child: Any = node[part]
    elif isinstance(node, dict):
        part = str(part)
        child = node.get(part)
    else:
        where = ".".join(map(str, override.path[:depth]))
        raise OverridePathError(override, f"{where} is a single value, without a key '{escape.name(str(part))}'")
    if last:
        child, placed = _value(child, override), depth
    elif child is None:
        # The override creates everything below, so errors in it are its own.
        child, placed = _put({}, override, depth + 1)[0], depth
    else:
        child, placed = _put(child, override, depth + 1)
    if isinstance(node, list):
        return [*node[: int(part)], child, *node[int(part) + 1 :]], placed
    return {**node, part: child}, placed


def _value(before: Any, override: Override) -> Any:
    """Return the value at the end of an override's path.

    `model=` replaces the network of a chain.
    """
    is_network = override.path == ("model",) and isinstance(override.value, dict) and "chain" not in override.value
    places = networks_of(before) if is_network else []
    if len(places) > 1:
        names = " or ".join(f"set=model.chain.{at}=…" for at in places)
        raise OverridePathError(override, f"the chain has {len(places)} networks; {names} replaces one")
    return with_network(before, override.value) if places else override.value


def _assignment(text: str) -> Override:
    path, equals, value = text.partition("=")
    parts = path.strip().split(".")
    if len(parts) > _MAX_DEPTH:
        raise RecipeError(f"set={escape.name(text)}: the path has {len(parts)} parts; the limit is {_MAX_DEPTH}")
    if not equals or not all(parts):
        raise RecipeError(
            f"set={escape.name(text)}: is not PATH=VALUE",
            hint="example: set=stages.simulate.inputs.seed=3; put lists in brackets",
        )
    if parts[0] in _FIXED:
        reason, instead = _FIXED[parts[0]]
        raise RecipeError(f"set={escape.name(text)}: {reason}", hint=instead)
    try:
        parsed = parse_value(value)
    except ValueError as error:
        raise RecipeError(f"set={escape.name(text)}: {error}") from None
    return Override(f"set={text}", yaml_path(".".join(parts)), parsed)


def _split(text: str) -> list[str]:
    """Split at commas and semicolons outside brackets and quotes."""
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
