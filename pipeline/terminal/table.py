"""A table of outcomes, of `doit bench` and of a matrix: as text cells, for rich, as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stages.messages import escape

if TYPE_CHECKING:
    from rich.console import RenderableType

# Columns of words; all others are of figures.
_TEXT = {"model", "recipe", "target", "verdict", "others", "network", "candidate"}


@dataclass(frozen=True)
class Table:
    """Titles and cells; a cell may have several lines. `good` says of each row whether it is as it should be."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    good: tuple[bool, ...]


def render(table: Table, title: str) -> RenderableType:
    """As a rich table; rows that are not good are red."""
    from rich.table import Table as RichTable
    from rich.text import Text

    # Text, as what is a string may have markup of rich.
    made = RichTable(title=Text(escape.line(title)), title_justify="left")
    for name in table.columns:
        left = name in _TEXT
        # An error's line may be long; the figures must keep their room.
        widest = 44 if name == "verdict" else None
        side: Literal["left", "right"] = "left" if left else "right"
        made.add_column(Text(escape.name(name)), justify=side, no_wrap=not left, max_width=widest)
    for row, good in zip(table.rows, table.good, strict=True):
        made.add_row(*(Text(escape.message(cell)) for cell in row), style=None if good else "red")
    return made


def markdown(table: Table) -> str:
    """As a Markdown table that ends with a newline."""
    rules = ["---" if name in _TEXT else "---:" for name in table.columns]
    return "".join(f"{escape.markdown_row(row)}\n" for row in (table.columns, rules, *table.rows))
