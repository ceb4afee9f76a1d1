"""Where something stands in a file, and the error that shows it there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.errors import RecipeError
from stages.messages import escape

# What YAML, and so an editor, takes for the end of a line.
LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# As people write it: a / in a password ends no host here.
_SECRET = re.compile(r"://([^\s\"']{1,500})@")
# The width of a source line in a message; of a longer one the part around the column is shown.
_SHOWN = 110


@dataclass(frozen=True)
class Position:
    """Line and column, both from 1."""

    line: int
    column: int


def error_at(name: str, text: str, message: str, position: Position, hint: str = "") -> RecipeError:
    """The error `file:line:column: message`, followed by the line itself and a caret."""
    lines = LINE_END.split(text)
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    # libyaml reports an unexpected end one line after the last.
    line = min(position.line, len(lines))
    column = position.column if line == position.line else 1
    source, offset = _shortened(*_without_secrets(lines[line - 1], column))
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


def _without_secrets(source: str, column: int) -> tuple[str, int]:
    """A line with `***` for what stands before the last @ of a URL, and where its column is then (from 1)."""
    for secret in reversed([*_SECRET.finditer(source)]):
        source = f"{source[: secret.start(1)]}***{source[secret.end(1) :]}"
        behind = max(0, column - 1 - secret.start(1))
        column -= behind if column - 1 < secret.end(1) else len(secret[1]) - len("***")
    return source, column


def _shortened(source: str, column: int) -> tuple[str, int]:
    """A line as messages show it, and where its column is then (from 1): a long one around that column."""
    if len(source) <= _SHOWN:
        return source, column
    start = max(0, min(column - 1 - _SHOWN // 2, len(source) - _SHOWN))
    before, after = ("..." if start else ""), ("..." if start + _SHOWN < len(source) else "")
    return before + source[start : start + _SHOWN] + after, column - start + len(before)
