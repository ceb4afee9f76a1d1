"""Parsing with PyYAML, imported only for uncached texts because PyYAML loads slowly."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml

from pipeline.documents.positions import Position, error_at
from pipeline.documents.yaml_messages import explain_yaml_error
from pipeline.documents.yaml_subset import MERGE, compose, load
from pipeline.errors import RecipeError


def parse_yaml_value(text: str) -> Any:
    """Parse a YAML value. Raises ValueError if it is not YAML."""
    try:
        return load(text)
    except yaml.YAMLError as error:
        message = explain_yaml_error(error, text)
        raise ValueError("; ".join(part for part in (message.text, message.hint) if part)) from None


def dump_yaml(data: Mapping[str, Any]) -> str:
    """Return a mapping as YAML text. Raises ValueError for values without a YAML type."""
    try:
        return str(yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError((str(error) or "nested too deeply").splitlines()[0]) from None


def parse_yaml_document(name: str, text: str) -> Any:
    """Parse the text of the document `name`. Raises RecipeError with position and line."""
    try:
        return load(text)
    except yaml.YAMLError as error:
        message, position, hint = explain_yaml_error(error, text)
        if position is None:
            raise RecipeError(f"{name}: {message}", file=name) from None
        raise error_at(name, text, message, position, hint) from None


def position_of(text: str, path: Sequence[str | int], *, key: bool) -> Position:
    """Return the position of the value (or key) at `path`, or of the nearest enclosing value."""
    node = _nodes(text)
    mark = node.start_mark if node is not None else None
    for depth, part in enumerate(path):
        child, key_node = _child(node, part)
        if child is None:
            break
        at_key = key and depth == len(path) - 1 and key_node is not None
        mark = key_node.start_mark if at_key and key_node is not None else child.start_mark
        node = child
    return Position(mark.line + 1, mark.column + 1) if mark is not None else Position(1, 1)


class _Dumper(yaml.SafeDumper):
    """Dumper without aliases, since each value needs its position."""

    def ignore_aliases(self, data: Any) -> bool:
        """Disable aliases for all values."""
        return True


@lru_cache(maxsize=8)
def _nodes(text: str) -> yaml.Node | None:
    return compose(text)


def _child(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node | None, yaml.Node | None]:
    """Return the nodes of the value and of the key at `part`.

    Own keys take precedence over merged ones (`<<`).
    """
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
                child = _child(merged, part)
                if child[0] is not None:
                    return child
    return None, None
