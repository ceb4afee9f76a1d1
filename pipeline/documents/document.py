"""A YAML file: read fast, and read again with positions only when something in it is wrong.

`load_document` keeps the text. `Document.locate` composes the text a second time into nodes
that know line and column, and finds the node of a path such as ("stages", "layout", "rules", 0).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from pipeline.documents.yaml_subset import MERGE, YamlError, compose, load
from pipeline.errors import RecipeError
from stages.messages import escape

YamlPath = tuple[str | int, ...]
LARGEST_FILE = 4 << 20
# What YAML, and so an editor, takes for the end of a line.
_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# The width of a source line in a message; of a longer one the part around the column is shown.
_SHOWN = 110
_BYTE_ORDER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


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
        node = _nodes(self.text)
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
        return load(text)
    except yaml.YAMLError as error:
        raise ValueError(_problem(error)) from None


def document_of(data: Mapping[str, Any]) -> Document:
    """A dictionary as if it had been written in a file. Raises RecipeError for values that YAML does not have."""
    name = "(dictionary)"
    try:
        text = yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = str(error) or "nested too deeply"
        raise RecipeError(f"{name}: a recipe has YAML's types only: {problem.splitlines()[0]}") from None
    return _parsed(name, text)


def load_document(path: Path, name: str) -> Document:
    """Read a YAML file. Raises RecipeError for a file that cannot be read, and for what no recipe may have."""
    try:
        data = _read(path)
    except OSError as error:
        raise RecipeError(f"{name}: cannot be read: {error.strerror or error}", file=name) from None
    if len(data) > LARGEST_FILE:
        raise RecipeError(f"{name}: has more than {LARGEST_FILE >> 20} MiB, which no recipe needs", file=name)
    if data[:2] in _BYTE_ORDER_MARKS:
        raise RecipeError(f"{name}: is {_BYTE_ORDER_MARKS[data[:2]]} text; save it as UTF-8", file=name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        lines = _LINE_END.split(before)
        message = f"is not UTF-8 text: byte 0x{data[error.start]:02x}; save the file as UTF-8"
        text = data.decode("utf-8-sig", errors="replace")
        raise _error(name, text, message, Position(len(lines), len(lines[-1]) + 1)) from None
    return _parsed(name, text)


def _read(path: Path) -> bytes:
    """The bytes of a regular file, as far as it can be a recipe. Raises OSError."""
    # A pipe would be waited for until somebody writes into it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is no regular file")
        return stream.read(LARGEST_FILE + 1)


def _parsed(name: str, text: str) -> Document:
    try:
        return Document(name, text, load(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
        raise _error(name, text, _problem(error), position) from None
    except yaml.YAMLError as error:
        # A character that YAML does not allow, of which libyaml tells the offset in bytes.
        at = getattr(error, "position", None)
        if at is None:
            raise RecipeError(f"{name}: {_problem(error)}", file=name) from None
        lines = _LINE_END.split(text.encode()[:at].decode(errors="replace"))
        raise _error(name, text, _problem(error), Position(len(lines), len(lines[-1]) + 1)) from None


class _Dumper(yaml.SafeDumper):
    """Writes what is there twice twice: an alias would be blamed on the first."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@lru_cache(maxsize=8)
def _nodes(text: str) -> yaml.Node | None:
    return compose(text)


def _problem(error: yaml.YAMLError) -> str:
    if isinstance(error, YamlError):
        return str(error.problem)
    if isinstance(error, yaml.MarkedYAMLError):
        return "YAML syntax: " + ", ".join(part for part in (error.problem, error.context) if part)
    return f"YAML syntax: {getattr(error, 'reason', '') or str(error).splitlines()[0]}"


def _error(name: str, text: str, message: str, position: Position, hint: str = "") -> RecipeError:
    lines = _LINE_END.split(text)
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    # libyaml reports an unexpected end one line after the last.
    line = min(position.line, len(lines))
    column = position.column if line == position.line else 1
    source, offset = _shortened(lines[line - 1], column)
    before, behind = escape.line(source[: offset - 1]), escape.line(source[offset - 1 :])
    margin = f"{line:5} | "
    # A tab moves the caret as it moves the text above it.
    pad = "".join("\t" if letter == "\t" else " " for letter in before)
    more = hint.splitlines()
    if len(more) > 2:
        hint = f"{more[0]}\n{'; '.join(more[1:])}"
    where = f"{escape.name(name)}:{line}:{column}"
    shown = f"{where}: {escape.line(message)}\n{margin}{before}{behind}\n{' ' * 5} | {pad}^"
    return RecipeError(shown, hint=hint, file=name, line=line, column=column)


def _shortened(source: str, column: int) -> tuple[str, int]:
    """A line as messages show it, and where its column is then (from 1): a long one around that column."""
    if len(source) <= _SHOWN:
        return source, column
    start = max(0, min(column - 1 - _SHOWN // 2, len(source) - _SHOWN))
    before, after = ("..." if start else ""), ("..." if start + _SHOWN < len(source) else "")
    return before + source[start : start + _SHOWN] + after, column - start + len(before)


def _child(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node | None, yaml.Node | None]:
    """The value under `part` and the node of its key; merged (`<<`) mappings are searched after the mapping's own."""
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], None
    if not isinstance(node, yaml.MappingNode):
        return None, None
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != MERGE and key.value == str(part):
            return value, key
    for key, value in node.value:
        if key.tag == MERGE:
            for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                found = _child(merged, part)
                if found[0] is not None:
                    return found
    return None, None
