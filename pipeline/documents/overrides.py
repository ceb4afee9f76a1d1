"""Values given on the command line, over those of the recipe.

    target=rv32-rvp                     the target; board= is the same
    model=path/to/x.tflite              a file (relative to the project's root), or `model=zoo:ds_cnn`
    run_on=gdb://localhost:3333         a board instead of the simulator
    set=stages.simulate.inputs.seed=3   any value: a dotted path (list items by number), `=`, a YAML value
    set=stages.a.x=1,stages.b.y=[1,2]   several, separated by `,` or `;` outside brackets and quotes

The order above is the order in which they apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.documents.document import YamlPath, parse_value
from pipeline.errors import RecipeError, list_known
from stages.messages import escape
from stages.messages.wording import did_you_mean

VARIABLES = ("target", "board", "model", "run_on", "set")
RECIPE_VARIABLES = ("recipe", *VARIABLES)
_OPEN, _CLOSE = "[{(", "]})"
_INDEX = re.compile(r"^[0-9]{1,9}$", re.ASCII)
# No recipe is that deep.
_MOST_PARTS = 30
# What a recipe's file settles before a value is put over it, with what to do instead.
_SETTLED = {
    "extends": (
        "what a recipe extends is read before its values are set",
        "`doit new recipe NAME model=… extends=OTHER` writes a recipe that extends another",
    ),
    "name": ("a recipe is called as its file", "copy or rename the file; NAME.yaml is the recipe NAME"),
    "schema": ("the version of the recipe language is the file's", "leave it out"),
}


@dataclass(frozen=True)
class Override:
    """One value and where it goes; `text` is what the user typed.

    A value from a recipe's `matrix` has the `place` where it was written. `whole` is the path that was asked for, of
    which `path` is a part when what is above it was not there before.
    """

    text: str
    path: YamlPath
    value: Any
    matrix_path: YamlPath = ()
    requested_path: YamlPath = ()

    @property
    def display_text(self) -> str:
        """What the user typed, for a message."""
        return escape.name(self.text, 120)


def check_assignments(given: Iterable[tuple[str, str]], known: Sequence[str] = RECIPE_VARIABLES) -> None:
    """Refuse `name=value` arguments that mean nothing, are empty or contradict. Raises RecipeError."""
    values: dict[str, str] = {}
    for name, value in given:
        check_variables([name], known)
        if not value.strip(" \t,;"):
            raise RecipeError(f"{name}= is empty", hint="give a value, or leave it out")
        if values.setdefault(name, value) != value:
            which = "in a recipe with a matrix " if name in ("target", "model") else ""
            both = escape.name(f"{name}={values[name]},{value}")
            raise RecipeError(f"{name}= is given twice; {which}{both} means all of them")


class OverridePathError(RecipeError):
    """A value for a path that leads nowhere in the recipe; `reason` is the message without the override's text."""

    def __init__(self, override: Override, reason: str) -> None:
        super().__init__(f"{override.display_text}: {reason}")
        self.override = override
        self.reason = reason


def parse_overrides(variables: Mapping[str, str]) -> list[Override]:
    """Overrides from `target`, `model` and `set`, in the order in which they apply. Raises RecipeError."""
    check_assignments((name, value) for name, value in variables.items() if name in VARIABLES)
    found = []
    if "target" in variables:
        found.append(Override(f"target={variables['target']}", ("target",), variables["target"]))
    if "board" in variables:
        if variables.get("target", variables["board"]) != variables["board"]:
            raise RecipeError("target= and board= name two targets", hint="board= is target= by another name; give one")
        found = [Override(f"board={variables['board']}", ("target",), variables["board"])]
    if "run_on" in variables:
        text = f"run_on={variables['run_on']}"
        found.append(Override(text, ("stages", "simulate", "run_on"), variables["run_on"]))
        found.append(Override(text, ("stages", "compile", "host"), "debugger"))
    if "model" in variables:
        text = variables["model"]
        if re.match(r"https?:", text.strip()):
            hint = "give both: set='model={url: \"" + text.strip() + "\", sha256: …}'"
            raise RecipeError(f"model={escape.name(text)}: a download needs its sha256", hint=hint)
        found.append(Override(f"model={text}", ("model",), model_entry(text)))
    assigned: list[Override] = []
    for part in _split(variables.get("set", "")):
        assigned.append(_assignment(part))
        _refuse_replaced(assigned)
    return found + assigned


def _refuse_replaced(assigned: Sequence[Override]) -> None:
    """Refuse the last of these where it leaves nothing of one before it. Raises RecipeError."""
    *others, last = assigned
    for other in others:
        if other.path[: len(last.path)] == last.path and (other.path, other.value) != (last.path, last.value):
            path = escape.name(".".join(map(str, last.path)))
            if other.path == last.path:
                raise RecipeError(
                    f"{last.display_text}: {path} is given twice", hint=f"the other is {other.display_text}"
                )
            raise RecipeError(
                f"{last.display_text}: replaces what {other.display_text} gives", hint="give it first, or one of them"
            )


def check_variables(given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse `name=value` arguments that mean nothing. Raises RecipeError."""
    known = list(known)
    for name in given:
        if name not in known:
            message = f"unknown argument '{escape.name(name)}='{did_you_mean(name, known)}"
            raise RecipeError(message, hint=list_known("arguments", known))


def check_single_model(given: Iterable[Override], root: Path) -> None:
    """Refuse `model=a,b` where one is needed, unless it is the name of a file. Raises RecipeError."""
    for override in given:
        text = override.text.removeprefix("model=")
        if override.path == ("model",) and "," in text and text != override.text and not (root / text).exists():
            message = f"'{escape.name(text)}' is several models; for these a recipe needs a matrix with the axis model"
            raise RecipeError(f"{override.display_text}: {message}")


def model_entry(text: str) -> dict[str, str]:
    """The model entry that `model=text` means."""
    return {"zoo": text.removeprefix("zoo:")} if text.startswith("zoo:") else {"file": text}


def yaml_path(text: str) -> YamlPath:
    """`stages.tensorize.rules.0.kernel` as a path; list items are numbers."""
    return tuple(int(part) if _INDEX.match(part) else part for part in text.split("."))


def apply_overrides(data: Any, overrides: list[Override]) -> tuple[Any, list[Override]]:
    """`data` with the overrides in it, and the overrides with the path of the topmost value that each one put there.

    Mappings on the way are created; a list item must exist. Raises RecipeError naming the override.
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
            raise OverridePathError(override, f"{where} is a list of {len(node)} items; '{name}' is none of them")
        child: Any = node[part]
    elif isinstance(node, dict):
        part = str(part)
        child = node.get(part)
    else:
        where = ".".join(map(str, override.path[:depth]))
        raise OverridePathError(override, f"{where} is a single value, it has no '{escape.name(str(part))}'")
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
    if len(parts) > _MOST_PARTS:
        raise RecipeError(f"set={escape.name(text)}: a path of {len(parts)} words, which leads nowhere")
    if not equals or not all(parts):
        raise RecipeError(
            f"set={escape.name(text)}: is not PATH=VALUE",
            hint="such as set=stages.simulate.inputs.seed=3; put lists in brackets",
        )
    if parts[0] in _SETTLED:
        reason, instead = _SETTLED[parts[0]]
        raise RecipeError(f"set={escape.name(text)}: {reason}", hint=instead)
    try:
        parsed = parse_value(value)
    except ValueError as error:
        raise RecipeError(f"set={escape.name(text)}: {error}") from None
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
