"""Positions in a file, and the error that shows a line with a caret."""

import re
from dataclasses import dataclass

from pipeline.errors import RecipeError
from stages.support.messages import escape

# Line ends of YAML.
LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# User and password of a URL. The password may contain an unescaped "/".
_CREDENTIALS = re.compile(r"://([^\s\"']{1,500})@")
# Maximum width of a source line in a message; longer lines are cut around the column.
_MAX_WIDTH = 110


@dataclass(frozen=True)
class Position:
    """Line and column, both starting at 1."""

    line: int
    column: int


def error_at(name: str, text: str, message: str, position: Position, hint: str = "") -> RecipeError:
    """Return the error `file:line:column: message`, followed by the line and a caret."""
    lines = LINE_END.split(text)
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    # libyaml reports an unexpected end one line after the last.
    line = min(position.line, len(lines))
    column = position.column if line == position.line else 1
    source, offset = _shortened(*_without_secrets(lines[line - 1], column))
    before, after = escape.line(source[: offset - 1]), escape.line(source[offset - 1 :])
    margin = f"{line:5} | "
    # Tabs are kept, so that the caret aligns.
    pad = "".join("\t" if letter == "\t" else " " for letter in before)
    hint_lines = hint.splitlines()
    if len(hint_lines) > 2:
        hint = f"{hint_lines[0]}\n{'; '.join(hint_lines[1:])}"
    location = f"{escape.name(name)}:{line}:{column}"
    text_with_caret = f"{location}: {escape.line(message)}\n{margin}{before}{after}\n{' ' * 5} | {pad}^"
    return RecipeError(text_with_caret, hint=hint, file=name, line=line, column=column)


def _without_secrets(source: str, column: int) -> tuple[str, int]:
    """Replace URL credentials by `***`. Returns the line and the adjusted column (from 1)."""
    for secret in reversed([*_CREDENTIALS.finditer(source)]):
        source = f"{source[: secret.start(1)]}***{source[secret.end(1) :]}"
        removed = max(0, column - 1 - secret.start(1))
        column -= removed if column - 1 < secret.end(1) else len(secret[1]) - len("***")
    return source, column


def _shortened(source: str, column: int) -> tuple[str, int]:
    """Cut a long line around its column. Returns the line and its adjusted column (from 1)."""
    if len(source) <= _MAX_WIDTH:
        return source, column
    start = max(0, min(column - 1 - _MAX_WIDTH // 2, len(source) - _MAX_WIDTH))
    before, after = ("..." if start else ""), ("..." if start + _MAX_WIDTH < len(source) else "")
    return before + source[start : start + _MAX_WIDTH] + after, column - start + len(before)
