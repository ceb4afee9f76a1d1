"""The YAML that recipes are written in: plain values, text as keys, and no more of it than a person writes.

It is YAML 1.1 as PyYAML reads it, with the surprises taken out: dates and `1:30` are text, `1e-3` is a number as in
YAML 1.2, and refused are what no recipe means, each at its line and column:

    keys that are given twice, or that YAML takes for a number, a boolean or null
    numbers of more than 64 bits; `010`, which is 8 to some and 10 to others
    tags such as !!python/name or !!set
    nesting so deep that reading it would exhaust the stack; anchors that hold themselves; aliases that multiply
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import yaml

from stages.messages import escape

if TYPE_CHECKING:
    RecipeYaml = yaml.SafeLoader
else:
    # A PyYAML built without libyaml has no C loader; it is slower and otherwise the same.
    RecipeYaml = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MERGE = "tag:yaml.org,2002:merge"
MAX_DEPTH = 60
MAX_VALUES = 100_000
_TEXT = "tag:yaml.org,2002:str"
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
# The tags of a recipe, by what they stand before.
_TAGS: dict[str, tuple[type[yaml.Node], str]] = {
    _TEXT: (yaml.ScalarNode, "a text"),
    _INT: (yaml.ScalarNode, "a whole number"),
    _FLOAT: (yaml.ScalarNode, "a number"),
    "tag:yaml.org,2002:bool": (yaml.ScalarNode, "true or false"),
    "tag:yaml.org,2002:null": (yaml.ScalarNode, "null"),
    "tag:yaml.org,2002:seq": (yaml.SequenceNode, "a list"),
    "tag:yaml.org,2002:map": (yaml.MappingNode, "a mapping"),
}
_KINDS = {yaml.ScalarNode: "a single value", yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping"}
_KIND_OF_KEY = {_INT: "a number", _FLOAT: "a number", "tag:yaml.org,2002:bool": "true or false"}
# Of the 4,300 digits that Python converts; longer ones are no number of 64 bits in any notation.
_MOST_DIGITS = 100


class YamlError(yaml.MarkedYAMLError):
    """YAML that a recipe may not have; the message needs no "syntax" before it."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(problem=problem, problem_mark=mark)


class _Loader(RecipeYaml):
    """The safe loader for the subset."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
        return super().construct_mapping(node, deep=deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        short = node.tag.replace("tag:yaml.org,2002:", "!!")
        if node.tag == MERGE:
            raise YamlError("<< is a key that merges a mapping; as a text it stands in quotes", node.start_mark)
        if node.tag not in _TAGS:
            raise YamlError(f"the tag {short} means nothing in a recipe", node.start_mark)
        wanted, what = _TAGS[node.tag]
        if not isinstance(node, wanted):
            kind = next(words for kind, words in _KINDS.items() if isinstance(node, kind))
            raise YamlError(f"{short} stands before {what}, not before {kind}", node.start_mark)
        try:
            if node.tag in (_INT, _FLOAT) and ":" in node.value:  # to the base of 60
                raise ValueError
            return super().construct_object(node, deep=deep)
        except (ValueError, OverflowError, TypeError, LookupError):
            # `!!int four`, `!!bool 7`, `!!float` before nothing
            text = escape.quoted(str(node.value))
            raise YamlError(f"{text} is not {what}, as {short} says: leave {short} out", node.start_mark) from None

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, value in node.value:
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            wrong = [one for one in merged if not isinstance(one, yaml.MappingNode)]
            if key.tag == MERGE and wrong:
                raise YamlError("<< merges a mapping, or a list of mappings: `<<: *name`", wrong[0].start_mark)
        super().flatten_mapping(node)


def _whole_number(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = str(node.value)
    digits = text.replace("_", "").lstrip("+-")
    if re.fullmatch(r"0[0-9]+", digits):
        decimal = digits.lstrip("0") or "0"
        octal = f" or {int(digits, 8)}" if re.fullmatch(r"0[0-7]{1,20}", digits) else ""
        raise YamlError(
            f"a number that begins with 0 is ambiguous: write {escape.name(decimal)}{octal}", node.start_mark
        )
    value = None if len(digits) > _MOST_DIGITS else loader.construct_yaml_int(node)
    if value is None or not -(1 << 63) <= value < 1 << 63:
        raise YamlError(f"the number {escape.name(text)} has more than 64 bits", node.start_mark)
    return int(value)


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """PyYAML's without dates and numbers to the base of 60, with floats such as `1e-3`."""
    kept: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for letter, found in RecipeYaml.yaml_implicit_resolvers.items():
        kept[letter] = [(tag, form) for tag, form in found if tag in {*_TAGS, MERGE} - {_INT, _FLOAT}]
    numbers = (
        (_INT, r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)", "-+0123456789"),
        (_FLOAT, r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?", "-+0123456789."),
        (_FLOAT, r"[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+", "-+0123456789"),
        (_FLOAT, r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    )
    for tag, form, letters in numbers:
        for letter in letters:
            kept.setdefault(letter, []).append((tag, re.compile(f"^(?:{form})$")))
    return kept


_Loader.yaml_implicit_resolvers = _resolvers()
_Loader.add_constructor(_INT, _whole_number)


def load(text: str) -> Any:
    """The value of a YAML document, None for an empty one. Raises yaml.YAMLError."""
    node = compose(text)
    if node is None:
        return None
    loader = _Loader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def compose(text: str) -> yaml.Node | None:
    """The nodes of a YAML document, which know line and column, None for an empty one. Raises yaml.YAMLError."""
    _check_depth(text)
    node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    if node is not None:
        _values(node, {})
    return node


def _check_depth(text: str) -> None:
    """Refuse deep nesting, by the events alone: composing them would recurse."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise YamlError(f"values are nested more than {MAX_DEPTH} deep", event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _values(node: yaml.Node, counted: dict[int, int]) -> int:
    """How many values a node stands for with all its aliases written out. `counted` has 0 for those not yet done."""
    if id(node) in counted:
        if not counted[id(node)]:
            raise YamlError("an anchor holds itself", node.start_mark)
        return counted[id(node)]
    counted[id(node)] = 0
    total = 1
    if isinstance(node, yaml.SequenceNode):
        total += sum(_values(child, counted) for child in node.value)
    elif isinstance(node, yaml.MappingNode):
        total += sum(_values(child, counted) for pair in node.value for child in pair)
    if total > MAX_VALUES:
        raise YamlError(
            f"this is {total:,} values, with its aliases written out; {MAX_VALUES:,} at most", node.start_mark
        )
    counted[id(node)] = total
    return total


def _check_keys(node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        if key.tag == MERGE:
            continue
        if not isinstance(key, yaml.ScalarNode):
            raise YamlError("a key is text, not a list or a mapping", key.start_mark)
        name = escape.name(str(key.value))
        if key.tag != _TEXT and key.tag in _TAGS:
            if not name:
                raise YamlError("a key is missing before the colon", key.start_mark)
            kind = _KIND_OF_KEY.get(key.tag, "null")
            raise YamlError(f"the key {name} is read as {kind}; write '{name}' for text", key.start_mark)
        if key.value in seen:
            raise YamlError(f"key '{name}' is given twice", key.start_mark)
        seen.add(key.value)
