"""report.json as a table for the terminal or a text file."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stages.report.advice.advise import advice_line, few
from stages.report.estimate import COLUMN
from stages.report.rows import columns, layer_rows, summary
from stages.support.messages import escape

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_RIGHT = {"#", "MACs", "instructions", "cycles", "per MAC", "share", COLUMN}
_NARROW = {"#", "op", "instructions", "cycles", "per MAC", "share"}
_INDENT = 14
_TRY = "  try"  # before a command, which stays on one line, to be copied


@dataclass(frozen=True)
class Rendered:
    """The layer table and the summary below it, as a renderable of rich."""

    title: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    below: tuple[tuple[str, str], ...]
    width: int

    def __rich__(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table()
        for name in self.titles:
            table.add_column(name, justify="right" if name in _RIGHT else "left", no_wrap=name in _RIGHT)
        for row in self.rows:
            table.add_row(*map(Text, row))
        lines = (_text(Text.assemble((name, "bold"), value), is_command=_is_try(name)) for name, value in self.below)
        return Group(Text(self.title, style="italic"), table, *lines)

    def plain(self) -> str | None:
        """Return the text without styles.

        None if lines have to be wrapped or have characters of unknown width.
        """
        below = [f"{name}{value}" for name, value in self.below]
        wrapped = [f"{name}{value}" for name, value in self.below if not _is_try(name)]
        lines = [self.title, *(line for text in below for line in text.split("\n"))]
        if not all(is_simple(cell) for row in self.rows for cell in row) or not all(
            is_simple(line.lstrip(" ")) for line in lines
        ):
            return None
        table = plain_table(self.titles, self.rows, _RIGHT)
        widths = (len(line) for text in (self.title, *wrapped, table[0]) for line in text.split("\n"))
        if max(widths) > self.width:
            return None
        return "\n".join([self.title, *table, *below, ""])


def render(report: dict[str, Any], *, width: int = 160) -> Rendered:
    """Render the report. Below 120 columns the table has only the most important columns."""
    titles = columns(report)
    shown = tuple(name for name in titles if width >= 120 or name in _NARROW | {"kernel"})
    rows = tuple(
        tuple(escape.line(cell) for name, cell in zip(titles, row, strict=True) if name in shown)
        for row in layer_rows(report)
    )
    title = f"{escape.name(report['model']['name'])} on {report['target']}"
    advice = [line for entry in few(report.get("advice", ())) for line in _advice(entry)]
    below = [*summary(report), *advice, *(("warning", warning) for warning in report["warnings"])]
    return Rendered(title, shown, rows, tuple(_line(name, value, width) for name, value in below), width)


def _is_try(name: str) -> bool:
    return name.rstrip() == _TRY


def _text(text: Text, *, is_command: bool) -> Text:
    """Return a text of rich; one that is not wrapped, if it is a command."""
    if is_command:
        text.no_wrap, text.overflow = True, "ignore"
    return text


def _advice(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a line of advice, and one with its command."""
    yield "advice", advice_line(entry)
    if entry["command"]:
        yield _TRY, entry["command"]


def _line(name: str, value: str, width: int) -> tuple[str, str]:
    """Return name and value, the value wrapped in its own column, without trailing blanks."""
    if name == _TRY:
        return f"{name:<{_INDENT}}", escape.line(value)
    wrapped = textwrap.wrap(escape.line(value), max(width - _INDENT, 20), break_long_words=False)
    return f"{escape.line(name):<{_INDENT}}", f"\n{' ' * _INDENT}".join(wrapped)


# A text table that looks like rich's, without importing rich. For tables in which no cell wraps.


# Characters that are one column wide in every terminal.
_SIMPLE = re.compile(r"[\x20-\x7e…]*")


def is_simple(text: str) -> bool:
    """Return whether a text has no tab, no wide character, and no blanks at its ends."""
    return text == text.strip() and _SIMPLE.fullmatch(text) is not None


def plain_table(titles: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str]) -> list[str]:
    """Return the lines of a table of simple cells. Columns in `right` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]

    def rule(line: str, ends: str) -> str:
        return ends[0] + ends[1].join(line * (width + 2) for width in widths) + ends[2]

    def cells(row: Iterable[str], wall: str) -> str:
        filled = (
            cell.rjust(width) if title in right else cell.ljust(width)
            for cell, width, title in zip(row, widths, titles, strict=True)
        )
        return f"{wall} " + f" {wall} ".join(filled) + f" {wall}"

    return [
        *(rule("━", "┏┳┓"), cells(titles, "┃"), rule("━", "┡╇┩")),
        *(cells(row, "│") for row in rows),
        rule("─", "└┴┘"),
    ]
