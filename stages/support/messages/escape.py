"""Escape text from models, recipes and tools for its destination.

    terminal      messages, tables, progress: no control character reaches the terminal, no line is forged
    log line      log.txt, read with the same tools: as in the terminal, but never shortened
    Markdown      report.md, matrix.md, tables of `doit bench`: as in the terminal, and nothing is markup

Unprintable characters (control characters, escape sequences, direction marks, zero-width characters, lone surrogates)
are shown by their escape as in Python and C: `\\x1b`, `\\n`, `\\u202e`. So are accents without a letter, and stacks of
more than four, which would cover other text.
JSON needs no escaping here: json.dumps makes any text valid.
"""

import re
import unicodedata
from collections.abc import Sequence

# Marks (accents, vowel signs) that a letter may have; no language needs more.
_MARKS = 4
# Characters that a name and a line of a message may have.
NAME_LIMIT = 80
LINE_LIMIT = 600
# Lines of a message. Longer compiler output is in log.txt.
MESSAGE_LINES = 12

# User and password of a URL, also where a password has an @.
_USER_INFO = re.compile(r"(?<=://)[^\s/?#]*@")
# ASCII punctuation that begins markup inside a line of Markdown, with GitHub's additions.
_MARKUP = re.compile(r"[\\`*\[\]<|&~$]|(?<![^\W_])_|_(?![^\W_])|(?<=\bwww)\.|:(?=//)", re.IGNORECASE)
# The query of a URL; signed URLs have their token there. URLs without a query match too, so no text is scanned twice.
_QUERY = re.compile(r"(://[^\s?\"'<>]*)(\?[^\s\"'<>]+)?")


def without_credentials(text: str) -> str:
    """Replace user and password, and the query, of each URL by `***`."""
    if "://" not in text:
        return text
    text = _USER_INFO.sub("***@", text) if "@" in text else text
    return _QUERY.sub(lambda url: url[1] + "?***" * bool(url[2]), text) if "?" in text else text


def visible(text: str) -> str:
    """Return one line in which unprintable characters and surplus accents are escaped.

    URLs lose their user, password and query. All text for people passes through this function.
    """
    text = without_credentials(text)
    if text.isascii():
        return text if text.isprintable() else "".join(map(_visible, text))
    shown, marks = [], _MARKS  # an accent before the first letter is escaped
    for letter in text:
        is_mark = unicodedata.category(letter) in ("Mn", "Me")
        shown.append(_escape(letter) if is_mark and marks >= _MARKS else _visible(letter))
        marks = marks + 1 if is_mark else 0 if letter.isprintable() else _MARKS
    return "".join(shown)


def shortened(text: str, limit: int = NAME_LIMIT) -> str:
    """Return the text, without its middle if it has more than `limit` characters.

    Names in a network often differ only at the end.
    """
    text = without_credentials(text)  # before the cut, which may leave half a URL
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]}...{text[-limit // 4 :]}"


def name(text: str, limit: int = NAME_LIMIT) -> str:
    """Return a name from a model or a recipe for a line in the terminal."""
    # Cut first: the text may have megabytes.
    return visible(shortened(text, limit))


def quoted(text: str) -> str:
    """Return the result of `name` in quotes, for use in a sentence."""
    return visible(repr(shortened(text)))


def line(text: str) -> str:
    """Return a line for the terminal. Tabs stay."""
    return "\t".join(map(visible, shortened(text, LINE_LIMIT).split("\t")))


def message(text: str) -> str:
    """Return a message for the terminal, cut to MESSAGE_LINES lines with a count of the rest.

    Tracebacks are not cut.
    """
    lines = text.rstrip("\n").split("\n")
    if "Traceback (most recent call last):" in lines:
        return "\n".join(map(log_line, lines))
    shown = [line(text.rstrip("\r")) for text in lines[:MESSAGE_LINES]]
    if len(lines) > MESSAGE_LINES:
        shown.append(f"… and {len(lines) - MESSAGE_LINES} more lines")
    return "\n".join(shown)


def log_line(text: str) -> str:
    """Return a line for log.txt, not shortened. Tabs stay."""
    return "\t".join(map(visible, text.split("\t")))


def markdown(text: str) -> str:
    """Return text for use inside a line of Markdown, with markup escaped."""
    return _escaped(visible(text), text.count("*") == 1)


def markdown_cell(text: str) -> str:
    """Return a cell of a Markdown table, with line breaks as `<br>`."""
    lone = text.count("*") == 1
    return "<br>".join(_escaped(visible(shortened(paragraph, LINE_LIMIT)), lone) for paragraph in text.split("\n"))


def markdown_row(cells: Sequence[str]) -> str:
    """Return a row of a Markdown table, without an end of line."""
    return f"| {' | '.join(map(markdown_cell, cells))} |"


def _escaped(text: str, lone_star: bool) -> str:
    # A lone star, as in a glob, is no markup.
    return _MARKUP.sub(lambda match: match[0] if lone_star and match[0] == "*" else f"\\{match[0]}", text)


def _visible(letter: str) -> str:
    return letter if letter.isprintable() else _escape(letter)


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
