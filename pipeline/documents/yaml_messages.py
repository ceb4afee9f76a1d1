"""What a message says of YAML that cannot be read: in words for people who write YAML, not for those who parse it."""

from __future__ import annotations

import re
from typing import NamedTuple

import yaml

from pipeline.documents.positions import LINE_END, Position
from pipeline.documents.yaml_subset import YamlError

_LONGEST_KEY = 1024  # characters; YAML 1.1 and 1.2, section 7.4.2
# The library's words, and ours. Of the others the library's are shown.
_WORDS = {
    "could not find expected ':'": "a key needs ': ' behind it",
    "mapping values are not allowed in this context": "a ': ' cannot stand here",
    "found incompatible YAML document": "this version of YAML is unknown; 1.1 and 1.2 are known",
    "found duplicate %YAML directive": "the version of YAML is given twice",
    "found unknown directive name": "a line that begins with % is a directive, and this one is unknown",
    "but found another document": "a second document begins here; one is read",
    "found undefined alias": "no anchor with this name stands before it",
    "found character that cannot start any token": "no value begins with this character",
    "found unexpected end of stream": "the text in quotes does not end",
    "found unknown escape character": "unknown escape; between ' and ' a \\ stands for itself",
    "found a tab character that violates indentation": "a tab does not indent",
    "did not find expected node content": "a value is missing",
    "second occurrence": "another value has this anchor",
    "did not find expected key": "this does not belong to the mapping before it: check the indentation",
    "did not find expected '-' indicator": "this does not belong to the list before it: check the indentation",
    "did not find expected <document start>": "this does not belong to what stands before it",
    "did not find expected alphabetic or numeric character": "an anchor or an alias has a name of letters and digits",
}
# What is open: its name, and what ends it.
_OPEN = {"while parsing a flow sequence": ("list", "]"), "while parsing a flow mapping": ("mapping", "}")}
_DIRECTIVES = ("found incompatible YAML document", "found duplicate %YAML directive")
_BEGIN_HERE = ("while scanning a simple key", "while scanning a quoted scalar")


class YamlMessage(NamedTuple):
    """What is wrong, where (None: unknown), and what helps ('': nothing is known)."""

    message: str
    position: Position | None
    hint: str


def explain_yaml_error(error: yaml.YAMLError, text: str) -> YamlMessage:
    """Explain what PyYAML, or the checks of yaml_subset, raised for `text`."""
    if isinstance(error, YamlError):
        return YamlMessage(str(error.problem), _position(error.problem_mark), _advice(error, text))
    if isinstance(error, yaml.MarkedYAMLError):
        message, mark, hint = _syntax(error, text)
        return YamlMessage(f"YAML syntax: {message}", _position(mark), hint)
    # A character that YAML does not allow, of which libyaml tells the offset in bytes.
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
        return "a tab does not indent", mark, _advice(error, text)
    if rest.startswith(("}", "]")) and context not in _OPEN:
        return f"nothing is open that this {rest[0]} could end", mark, _advice(error, text)
    if rest.startswith(":") and len(re.split(r"[{\[,]", before)[-1].strip()) > _LONGEST_KEY:
        return f"a key has more than {_LONGEST_KEY:,} characters, the most that YAML allows", mark, "shorten the key"
    if context in _OPEN and error.context_mark is not None:
        what, end = _OPEN[context]
        if not rest.strip():
            return f"the {what} that begins here does not end: {end} is missing", error.context_mark, ""
        begin = f"{error.context_mark.line + 1}:{error.context_mark.column + 1}"
        message = f"a comma or {end} is missing here, in the {what} that begins at {begin}"
        return message, mark, _advice(error, text)
    if problem in _DIRECTIVES or context == "while scanning a directive":
        words = _WORDS.get(problem, _WORDS["found unknown directive name"])
        return words, mark, "leave the line out; a text that begins with % stands in quotes"
    if problem == "mapping values are not allowed in this context":
        return _WORDS[problem], mark, "a text with ': ' in it stands in quotes; another key stands on a line of its own"
    if context in _BEGIN_HERE and problem in _WORDS:
        return _WORDS[problem], error.context_mark or mark, _advice(error, text)
    plain = _WORDS.get(problem) or ", ".join(part for part in (problem, context) if part)
    return plain, mark, _advice(error, text)


def _position(mark: yaml.Mark | None) -> Position | None:
    return Position(mark.line + 1, mark.column + 1) if mark is not None else Position(1, 1)


def _around(text: str, mark: yaml.Mark | None) -> tuple[str, str]:
    """Return the part of the marked line before the mark, and what is behind it."""
    lines = LINE_END.split(text)
    if mark is None or mark.line >= len(lines):
        return "", ""
    return lines[mark.line][: mark.column], lines[mark.line][mark.column :]


def _advice(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return what helps where a tab or a letter means something else to YAML than to the writer, '' if unknown."""
    for mark in (error.problem_mark, error.context_mark):
        before, rest = _around(text, mark)
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
