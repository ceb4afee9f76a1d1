"""A YAML file: read fast, and read again with positions only when something in it is wrong.

`load_document` uses PyYAML's C loader and keeps the text. `Document.locate` composes the text a second time into nodes
that know line and column, and finds the node of a path such as ("stages", "layout", "rules", 0).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from pipeline.errors import RecipeError

if TYPE_CHECKING:
    _Loader = yaml.SafeLoader
else:
    # A PyYAML built without libyaml has no C loader; it is slower and otherwise the same.
    _Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

YamlPath = tuple[str | int, ...]
_MERGE = "tag:yaml.org,2002:merge"


class _DuplicateKeyError(Exception):
    def __init__(self, key: yaml.ScalarNode) -> None:
        super().__init__(str(key.value))
        self.mark = key.start_mark


class _RecipeLoader(_Loader):
    """The safe loader, minus silently dropped duplicate keys, plus YAML 1.2's `1e-3` (a string in YAML 1.1)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                    if key.value in seen:
                        raise _DuplicateKeyError(key)
                    seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_RecipeLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


@dataclass(frozen=True)
class Position:
    """Line and column, both from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Document:
    """One parsed YAML file: `name` is how messages call it (relative to the project when it lies inside)."""

    name: str
    text: str
    data: Any

    def locate(self, path: YamlPath, *, key: bool = False) -> Position:
        """Where the value at `path` stands (its key when `key`), or the nearest enclosing value that was written."""
        node = yaml.compose(self.text, Loader=_Loader)
        mark = node.start_mark if node is not None else None
        for depth, part in enumerate(path):
            child, label = _child(node, part)
            if child is None:
                break
            want_key = key and depth == len(path) - 1 and label is not None
            mark = label.start_mark if want_key and label is not None else child.start_mark
            node = child
        return Position(mark.line + 1, mark.column + 1) if mark is not None else Position(1, 1)

    def error(self, message: str, position: Position, *, hint: str = "") -> RecipeError:
        """The error `file:line:column: message`, followed by the line itself and a caret."""
        return _error(self.name, self.text, message, position, hint)


def parse_value(text: str) -> Any:
    """A YAML value from the command line. Raises ValueError when it is not YAML."""
    try:
        return yaml.load(text, Loader=_RecipeLoader)
    except (yaml.YAMLError, _DuplicateKeyError) as error:
        raise ValueError(_problem(error)) from None


def document_of(data: Mapping[str, Any]) -> Document:
    """A dictionary as if it had been written in a file. Raises RecipeError for values that YAML does not have."""
    try:
        text = yaml.safe_dump(dict(data), sort_keys=False)
    except yaml.representer.RepresenterError as error:
        raise RecipeError(f"(dictionary): a recipe has YAML's types only: {error}") from None
    return Document("(dictionary)", text, parse_value(text))


def load_document(path: Path, name: str) -> Document:
    """Read a YAML file. Raises RecipeError for a file that cannot be read, bad syntax and duplicate keys."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RecipeError(f"{name}: is not UTF-8 text (byte {error.start})", file=name) from None
    except OSError as error:
        raise RecipeError(f"{name}: cannot be read: {error.strerror}", file=name) from None
    try:
        data = yaml.load(text, Loader=_RecipeLoader)
    except _DuplicateKeyError as error:
        position = Position(error.mark.line + 1, error.mark.column + 1)
        raise _error(name, text, f"key '{error}' is given twice", position) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
        raise _error(name, text, f"YAML syntax: {_problem(error)}", position) from None
    except yaml.YAMLError as error:
        raise RecipeError(f"{name}: YAML syntax: {_problem(error)}", file=name) from None
    return Document(name, text, data)


def _problem(error: Exception) -> str:
    if isinstance(error, _DuplicateKeyError):
        return f"key '{error}' is given twice"
    if isinstance(error, yaml.MarkedYAMLError):
        return ", ".join(part for part in (error.problem, error.context) if part)
    return str(error).splitlines()[0]


def _error(name: str, text: str, message: str, position: Position, hint: str = "") -> RecipeError:
    lines = text.splitlines()
    # libyaml reports an unexpected end one line after the last.
    line = min(position.line, max(len(lines), 1))
    column = position.column if line == position.line else 1
    source = lines[line - 1] if lines else ""
    margin = f"{line:5} | "
    # A tab moves the caret as it moves the text above it.
    pad = "".join("\t" if letter == "\t" else " " for letter in source[: column - 1])
    shown = f"{name}:{line}:{column}: {message}\n{margin}{source}\n{' ' * 5} | {pad}^"
    return RecipeError(shown, hint=hint, file=name, line=line, column=column)


def _child(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node | None, yaml.Node | None]:
    """The value under `part` and the node of its key; merged (`<<`) mappings are searched after the mapping's own."""
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], None
    if not isinstance(node, yaml.MappingNode):
        return None, None
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE and key.value == str(part):
            return value, key
    for key, value in node.value:
        if key.tag == _MERGE:
            for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                found = _child(merged, part)
                if found[0] is not None:
                    return found
    return None, None
