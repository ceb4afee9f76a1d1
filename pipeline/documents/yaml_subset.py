"""The subset of YAML for recipes: plain values, text as keys, bounded size.

It is YAML 1.1 as PyYAML reads it, except that dates and `1:30` are text, and `1e-3` is a number as in YAML 1.2.
These are errors, with line and column:

    duplicate keys, and keys that YAML reads as a number, a boolean or null
    integers of more than 64 bits; `010`, which is 8 in YAML 1.1 and 10 in YAML 1.2
    tags such as !!python/name or !!set
    nesting deeper than MAX_DEPTH, anchors that contain themselves, aliases that expand to more than MAX_VALUES values
"""

import re
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import yaml

from stages.support.messages import escape

if TYPE_CHECKING:
    RecipeYaml = yaml.SafeLoader
else:
    # PyYAML without libyaml has no C loader. The Python loader is slower.
    RecipeYaml = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MERGE = "tag:yaml.org,2002:merge"
MAX_DEPTH = 60
MAX_VALUES = 100_000
_TEXT = "tag:yaml.org,2002:str"
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
# Allowed tags: node type and description.
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
# Longer numbers exceed 64 bits in any notation. Python converts at most 4,300 digits.
_MAX_DIGITS = 100


class YamlError(yaml.MarkedYAMLError):
    """Valid YAML that is not allowed in a recipe."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(problem=problem, problem_mark=mark)


class _Loader(RecipeYaml):
    """Safe loader for the subset."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Construct a mapping. Raises YamlError for duplicate or non-text keys."""
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
        return super().construct_mapping(node, deep=deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Construct a value. Raises YamlError for a tag that is not allowed or does not fit."""
        short_tag = node.tag.replace("tag:yaml.org,2002:", "!!")
        if node.tag == MERGE:
            raise YamlError("<< is the merge key; quote it for text", node.start_mark)
        if node.tag not in _TAGS:
            raise YamlError(f"the tag {short_tag} is not allowed in recipes", node.start_mark)
        node_type, description = _TAGS[node.tag]
        if not isinstance(node, node_type):
            kind = next(words for kind, words in _KINDS.items() if isinstance(node, kind))
            raise YamlError(f"the tag {short_tag} is for {description}, not for {kind}", node.start_mark)
        try:
            if node.tag in (_INT, _FLOAT) and ":" in node.value:  # sexagesimal
                raise ValueError
            return super().construct_object(node, deep=deep)
        except (ValueError, OverflowError, TypeError, LookupError):
            # such as `!!int four`, `!!bool 7`, `!!float` without a value
            text = escape.quoted(str(node.value))
            raise YamlError(f"{text} is not {description}; remove the tag {short_tag}", node.start_mark) from None

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Apply merge keys. Raises YamlError for a merged value that is no mapping."""
        for key, value in node.value:
            sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
            wrong = [source for source in sources if not isinstance(source, yaml.MappingNode)]
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
            f"a number that starts with 0 is ambiguous: write {escape.name(decimal)}{octal}", node.start_mark
        )
    value = None if len(digits) > _MAX_DIGITS else loader.construct_yaml_int(node)
    if value is None or not -(1 << 63) <= value < 1 << 63:
        raise YamlError(f"the number {escape.name(text)} has more than 64 bits", node.start_mark)
    return int(value)


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return PyYAML's resolvers without dates and sexagesimal numbers, plus `1e-3`."""
    resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for letter, patterns in RecipeYaml.yaml_implicit_resolvers.items():
        resolvers[letter] = [(tag, pattern) for tag, pattern in patterns if tag in {*_TAGS, MERGE} - {_INT, _FLOAT}]
    numbers = (
        (_INT, r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)", "-+0123456789"),
        (_FLOAT, r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?", "-+0123456789."),
        (_FLOAT, r"[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+", "-+0123456789"),
        (_FLOAT, r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    )
    for tag, pattern, letters in numbers:
        for letter in letters:
            resolvers.setdefault(letter, []).append((tag, re.compile(f"^(?:{pattern})$")))
    return resolvers


_Loader.yaml_implicit_resolvers = _resolvers()
_Loader.add_constructor(_INT, _whole_number)


def load(text: str) -> Any:
    """Return the value of a YAML document, None if it is empty. Raises yaml.YAMLError."""
    node = compose(text)
    if node is None:
        return None
    loader = _Loader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def compose(text: str) -> yaml.Node | None:
    """Return the root node of a YAML document, None if empty. Raises yaml.YAMLError."""
    _check_depth(text)
    node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    if node is not None:
        _count_values(node, {})
    return node


def _check_depth(text: str) -> None:
    """Raise YamlError for deep nesting. Uses parser events, since composing recurses."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise YamlError(f"nested more than {MAX_DEPTH} levels deep", event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _count_values(node: yaml.Node, counted: dict[int, int]) -> int:
    """Count the values of a node with aliases expanded. `counted` has 0 for nodes in progress."""
    if id(node) in counted:
        if not counted[id(node)]:
            raise YamlError("an anchor contains itself", node.start_mark)
        return counted[id(node)]
    counted[id(node)] = 0
    total = 1
    if isinstance(node, yaml.SequenceNode):
        total += sum(_count_values(child, counted) for child in node.value)
    elif isinstance(node, yaml.MappingNode):
        total += sum(_count_values(child, counted) for pair in node.value for child in pair)
    if total > MAX_VALUES:
        raise YamlError(
            f"with its aliases this expands to {total:,} values; the limit is {MAX_VALUES:,}", node.start_mark
        )
    counted[id(node)] = total
    return total


def _check_keys(node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        if key.tag == MERGE:
            continue
        if not isinstance(key, yaml.ScalarNode):
            raise YamlError("a key must be text, not a list or a mapping", key.start_mark)
        name = escape.name(str(key.value))
        if key.tag != _TEXT and key.tag in _TAGS:
            if not name:
                raise YamlError("a key is missing before the colon", key.start_mark)
            kind = _KIND_OF_KEY.get(key.tag, "null")
            raise YamlError(f"YAML reads the key {name} as {kind}; write '{name}'", key.start_mark)
        if key.value in seen:
            raise YamlError(f"duplicate key '{name}'", key.start_mark)
        seen.add(key.value)
