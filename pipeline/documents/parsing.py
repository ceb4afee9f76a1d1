"""What is done with PyYAML, which takes as long to load as a short file to parse: imported when a text is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml

from pipeline.documents.shown import LINE_END, Position, error_at
from pipeline.documents.yaml_subset import MERGE, YamlError, compose, load
from pipeline.errors import RecipeError


def parsed_value(text: str) -> Any:
    """A YAML value. Raises ValueError when it is not YAML."""
    try:
        return load(text)
    except yaml.YAMLError as error:
        advice = _advice(error, text) if isinstance(error, yaml.MarkedYAMLError) else ""
        raise ValueError("; ".join(part for part in (_problem(error), advice) if part)) from None


def dumped(data: Mapping[str, Any]) -> str:
    """The text of a mapping. Raises ValueError, in words, for values that YAML does not have."""
    try:
        return str(yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError((str(error) or "nested too deeply").splitlines()[0]) from None


def parsed(name: str, text: str) -> Any:
    """The value of the document `name`. Raises RecipeError that shows what is wrong."""
    try:
        return load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
        raise error_at(name, text, _problem(error), position, _advice(error, text)) from None
    except yaml.YAMLError as error:
        # A character that YAML does not allow, of which libyaml tells the offset in bytes.
        at = getattr(error, "position", None)
        if at is None:
            raise RecipeError(f"{name}: {_problem(error)}", file=name) from None
        lines = LINE_END.split(text.encode()[:at].decode(errors="replace"))
        raise error_at(name, text, _problem(error), Position(len(lines), len(lines[-1]) + 1)) from None


def located(text: str, path: Sequence[str | int], *, key: bool) -> Position:
    """Where the value at `path` stands (its key when `key`), or the nearest enclosing value that was written."""
    node = _nodes(text)
    mark = node.start_mark if node is not None else None
    for depth, part in enumerate(path):
        child, label = _child(node, part)
        if child is None:
            break
        want_key = key and depth == len(path) - 1 and label is not None
        mark = label.start_mark if want_key and label is not None else child.start_mark
        node = child
    return Position(mark.line + 1, mark.column + 1) if mark is not None else Position(1, 1)


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


def _advice(error: yaml.MarkedYAMLError, text: str) -> str:
    """What helps where a tab or a letter means something else to YAML than to the writer; '' where nothing is known."""
    lines = LINE_END.split(text)
    for mark in (error.problem_mark, error.context_mark):
        if mark is None or mark.line >= len(lines):
            continue
        before, rest = lines[mark.line][: mark.column], lines[mark.line][mark.column :]
        if rest.startswith("\t"):
            return "indent with spaces, not with a tab"
        if rest.startswith("!") and not rest.startswith("!!"):
            return "a text that begins with ! stands in quotes"
        if isinstance(error, YamlError):
            continue
        if rest.startswith(tuple("*&@`%")):
            return f"a text that begins with {rest[0]} stands in quotes"
        if mark is error.problem_mark and rest and before.rstrip().endswith(("}", "]", "$")):
            return "a text with brackets or braces stands in quotes"
    return ""


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
