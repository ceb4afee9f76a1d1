"""Messages for invalid YAML, in the words of a YAML author instead of a parser."""

import re
from typing import NamedTuple

import yaml

from pipeline.documents.positions import LINE_END, Position
from pipeline.documents.yaml_subset import YamlError

_MAX_KEY = 1024  # characters; YAML 1.1 and 1.2, section 7.4.2
# Messages of libyaml, and the replacement. Other messages are shown as they are.
_REPLACEMENTS = {
    "could not find expected ':'": "a key needs ': ' after it",
    "mapping values are not allowed in this context": "': ' is not allowed here",
    "found incompatible YAML document": "unknown YAML version; use 1.1 or 1.2",
    "found duplicate %YAML directive": "duplicate %YAML directive",
    "found unknown directive name": "unknown directive; a line that starts with % is a directive",
    "but found another document": "a second document starts here; only one is allowed",
    "found undefined alias": "this alias has no anchor before it",
    "found character that cannot start any token": "a value cannot start with this character",
    "found unexpected end of stream": "the closing quote is missing",
    "found unknown escape character": "unknown escape sequence; single quotes take \\ literally",
    "found a tab character that violates indentation": "a tab cannot indent",
    "did not find expected node content": "a value is missing",
    "second occurrence": "the anchor is already defined",
    "did not find expected key": "not part of the mapping above: check the indentation",
    "did not find expected '-' indicator": "not part of the list above: check the indentation",
    "did not find expected <document start>": "unexpected text after the document",
    "did not find expected alphabetic or numeric character": "an anchor or alias name consists of letters and digits",
}
# Unclosed collections: name and closing bracket.
_UNCLOSED = {"while parsing a flow sequence": ("list", "]"), "while parsing a flow mapping": ("mapping", "}")}
_DIRECTIVES = ("found incompatible YAML document", "found duplicate %YAML directive")
_AT_CONTEXT = ("while scanning a simple key", "while scanning a quoted scalar")


class YamlMessage(NamedTuple):
    """Text, position (None: unknown) and hint ('': none) of a message."""

    text: str
    position: Position | None
    hint: str


def explain_yaml_error(error: yaml.YAMLError, text: str) -> YamlMessage:
    """Return the message for an error that PyYAML or yaml_subset raised for `text`."""
    if isinstance(error, YamlError):
        return YamlMessage(str(error.problem), _position(error.problem_mark), _hint(error, text))
    if isinstance(error, yaml.MarkedYAMLError):
        message, mark, hint = _syntax(error, text)
        return YamlMessage(f"YAML syntax: {message}", _position(mark), hint)
    # An invalid character: libyaml gives its offset in bytes.
    message = f"YAML syntax: {getattr(error, 'reason', '') or str(error).splitlines()[0]}"
    offset = getattr(error, "position", None)
    if offset is None:
        return YamlMessage(message, None, "")
    lines = LINE_END.split(text.encode()[:offset].decode(errors="replace"))
    return YamlMessage(message, Position(len(lines), len(lines[-1]) + 1), "")


def _syntax(error: yaml.MarkedYAMLError, text: str) -> tuple[str, yaml.Mark | None, str]:
    problem, context = str(error.problem or ""), str(error.context or "")
    mark = error.problem_mark or error.context_mark
    before, rest = _around(text, error.problem_mark)
    if rest.startswith("\t"):
        return "a tab cannot indent", mark, _hint(error, text)
    if rest.startswith(("}", "]")) and context not in _UNCLOSED:
        return f"{rest[0]} without an opening bracket", mark, _hint(error, text)
    if rest.startswith(":") and len(re.split(r"[{\[,]", before)[-1].strip()) > _MAX_KEY:
        return f"the key is longer than {_MAX_KEY:,} characters, YAML's limit", mark, "shorten the key"
    if context in _UNCLOSED and error.context_mark is not None:
        name, end = _UNCLOSED[context]
        if not rest.strip():
            return f"the {name} that starts here has no closing {end}", error.context_mark, ""
        begin = f"{error.context_mark.line + 1}:{error.context_mark.column + 1}"
        message = f"missing comma or {end} in the {name} that starts at {begin}"
        return message, mark, _hint(error, text)
    if problem in _DIRECTIVES or context == "while scanning a directive":
        words = _REPLACEMENTS.get(problem, _REPLACEMENTS["found unknown directive name"])
        return words, mark, "remove the line, or quote text that starts with %"
    if problem == "mapping values are not allowed in this context":
        return (_REPLACEMENTS[problem], mark, "quote text with ': ', or put the key on a new line")
    if context in _AT_CONTEXT and problem in _REPLACEMENTS:
        return _REPLACEMENTS[problem], error.context_mark or mark, _hint(error, text)
    fallback = _REPLACEMENTS.get(problem) or ", ".join(part for part in (problem, context) if part)
    return fallback, mark, _hint(error, text)


def _position(mark: yaml.Mark | None) -> Position | None:
    return Position(mark.line + 1, mark.column + 1) if mark is not None else Position(1, 1)


def _around(text: str, mark: yaml.Mark | None) -> tuple[str, str]:
    """Return the marked line before the mark, and from the mark on."""
    lines = LINE_END.split(text)
    if mark is None or mark.line >= len(lines):
        return "", ""
    return lines[mark.line][: mark.column], lines[mark.line][mark.column :]


def _hint(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return a hint for a tab or a letter with a special meaning in YAML, or ''."""
    for mark in (error.problem_mark, error.context_mark):
        before, rest = _around(text, mark)
        if rest.startswith("\t"):
            return "indent with spaces"
        if rest.startswith("!") and not rest.startswith("!!"):
            return "quote text that starts with !"
        if isinstance(error, YamlError):
            continue
        if rest.startswith(tuple("*&@`%")):
            return f"quote text that starts with {rest[0]}"
        if mark is error.problem_mark and rest and before.rstrip().endswith(("}", "]", "$")):
            return "quote text with brackets or braces"
    return ""
