"""What is done with PyYAML, which takes as long to load as a short file to parse: imported when a text is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml

from pipeline.documents.positions import Position, error_at
from pipeline.documents.yaml_messages import explain_yaml_error
from pipeline.documents.yaml_subset import MERGE, compose, load
from pipeline.errors import RecipeError


def parse_yaml_value(text: str) -> Any:
    """A YAML value. Raises ValueError when it is not YAML."""
    try:
        return load(text)
    except yaml.YAMLError as error:
        found = explain_yaml_error(error, text)
        raise ValueError("; ".join(part for part in (found.message, found.hint) if part)) from None


def dump_yaml(data: Mapping[str, Any]) -> str:
    """The text of a mapping. Raises ValueError, in words, for values that YAML does not have."""
    try:
        return str(yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError((str(error) or "nested too deeply").splitlines()[0]) from None


def parse_yaml_document(name: str, text: str) -> Any:
    """The value of the document `name`. Raises RecipeError that shows what is wrong."""
    try:
        return load(text)
    except yaml.YAMLError as error:
        message, position, hint = explain_yaml_error(error, text)
        if position is None:
            raise RecipeError(f"{name}: {message}", file=name) from None
        raise error_at(name, text, message, position, hint) from None


def position_of(text: str, path: Sequence[str | int], *, key: bool) -> Position:
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
