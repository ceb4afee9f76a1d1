"""A text table that looks like rich's, without importing rich. For tables in which no cell wraps."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

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
