"""Text from models, recipes and tools, made safe for where it goes: the one room for each destination.

    terminal      messages, tables, progress: no control character reaches the terminal, no line is forged
    log line      log.txt, read with the same tools: as in the terminal, but never shortened
    Markdown      report.md, matrix.md, tables of `doit bench`: as in the terminal, and nothing is markup

A character that is not printed (control characters, escape sequences, marks that change the direction of writing, of no
width, halves of surrogate pairs) is shown by its escape as in Python and C: `\\x1b`, `\\n`, `\\u202e`. So are accents
that have no letter, and piles of them, which would lie over other text.
JSON is no such place: json.dumps makes any text valid and keeps it whole.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# Marks (accents, vowel signs) that a letter may have; no language needs more.
_MARKS = 4
# Characters of a name, in a message or a cell, and of a line of a message.
NAME_LIMIT = 80
LINE_LIMIT = 600
# Lines of a message: what a compiler says may be longer, and is in log.txt.
MESSAGE_LINES = 12

# User and password of a URL, also where a password has an @.
_USER_INFO = re.compile(r"(?<=://)[^\s/?#]*@")
# Of ASCII punctuation, what begins markup inside a line of Markdown, GitHub's additions included.
_MARKUP = re.compile(r"[\\`*\[\]<|&~$]|(?<![^\W_])_|_(?![^\W_])|(?<=\bwww)\.|:(?=//)", re.IGNORECASE)
# Signed URLs have their token there. A URL without one matches too: so no text is read twice.
_QUERY = re.compile(r"(://[^\s?\"'<>]*)(\?[^\s\"'<>]+)?")


def without_credentials(text: str) -> str:
    """The text with `***` in place of user and password of each URL, and of what follows its `?`."""
    if "://" not in text:
        return text
    text = _USER_INFO.sub("***@", text) if "@" in text else text
    return _QUERY.sub(lambda url: url[1] + "?***" * bool(url[2]), text) if "?" in text else text


def visible(text: str) -> str:
    """On one line, with an escape for each character that is not printed, and for marks that belong to none.

    Of URLs without user, password and what follows a `?`: whatever is shown goes through here.
    """
    text = without_credentials(text)
    if text.isascii():
        return text if text.isprintable() else "".join(map(_visible, text))
    shown, marks = [], _MARKS  # as if there were enough of them before the first letter
    for letter in text:
        is_mark = unicodedata.category(letter) in ("Mn", "Me")
        shown.append(_escape(letter) if is_mark and marks >= _MARKS else _visible(letter))
        marks = marks + 1 if is_mark else 0 if letter.isprintable() else _MARKS
    return "".join(shown)


def shortened(text: str, limit: int = NAME_LIMIT) -> str:
    """The text, without its middle when it has more than `limit` characters; names of a network differ at the end."""
    text = without_credentials(text)  # before a part of them is all that is left
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]}...{text[-limit // 4 :]}"


def name(text: str, limit: int = NAME_LIMIT) -> str:
    """A name from a model or a recipe, for a line in the terminal."""
    # Cut first, as text may have megabytes.
    return visible(shortened(text, limit))


def quoted(text: str) -> str:
    """A name as `name` shows it, in quotes: where it stands in a sentence."""
    return visible(repr(shortened(text)))


def line(text: str) -> str:
    """A line for the terminal; a tab stays."""
    return "\t".join(map(visible, shortened(text, LINE_LIMIT).split("\t")))


def message(text: str) -> str:
    """A message for the terminal: lines that do not fit are left out and counted, of a traceback none."""
    lines = text.rstrip("\n").split("\n")
    if "Traceback (most recent call last):" in lines:
        return "\n".join(map(log_line, lines))
    shown = [line(one.rstrip("\r")) for one in lines[:MESSAGE_LINES]]
    if len(lines) > MESSAGE_LINES:
        shown.append(f"… and {len(lines) - MESSAGE_LINES} more lines")
    return "\n".join(shown)


def log_line(text: str) -> str:
    """A line for log.txt, whole; a tab stays."""
    return "\t".join(map(visible, text.split("\t")))


def markdown(text: str) -> str:
    """Text inside a line of Markdown, which shows it as it is."""
    return _escaped(visible(text), text.count("*") == 1)


def markdown_cell(text: str) -> str:
    """A cell of a table; its lines stay lines."""
    lone = text.count("*") == 1
    return "<br>".join(_escaped(visible(shortened(one, LINE_LIMIT)), lone) for one in text.split("\n"))


def markdown_row(cells: Sequence[str]) -> str:
    """A table's row, without an end of line."""
    return f"| {' | '.join(map(markdown_cell, cells))} |"


def _escaped(text: str, lone_star: bool) -> str:
    # A star needs another one to mean something; that of a glob stays as it was written.
    return _MARKUP.sub(lambda found: found[0] if lone_star and found[0] == "*" else f"\\{found[0]}", text)


def _visible(letter: str) -> str:
    return letter if letter.isprintable() else _escape(letter)


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
