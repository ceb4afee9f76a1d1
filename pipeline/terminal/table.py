"""Tables of `doit bench` and of a matrix: cells as text, for rich, as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stages.support.messages import escape

if TYPE_CHECKING:
    from rich.console import RenderableType

# Columns of text; all others have numbers.
_TEXT = {"model", "recipe", "target", "verdict", "others", "network", "candidate"}
_TEXT |= {"chip", "run", "variant", "options", "rows"}  # suite=silicon


@dataclass(frozen=True)
class Table:
    """Titles and cells; cells may have several lines. `good` is False for a problem row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    good: tuple[bool, ...]


def render(table: Table, title: str) -> RenderableType:
    """Return a rich table with problem rows in red."""
    from rich.table import Table as RichTable
    from rich.text import Text

    # Text objects: rich would interpret markup in strings.
    rich_table = RichTable(title=Text(escape.line(title)), title_justify="left")
    for name in table.columns:
        is_text = name in _TEXT
        # Limit the width of errors, so that the numbers fit.
        widest = 44 if name == "verdict" else None
        side: Literal["left", "right"] = "left" if is_text else "right"
        rich_table.add_column(Text(escape.name(name)), justify=side, no_wrap=not is_text, max_width=widest)
    for row, good in zip(table.rows, table.good, strict=True):
        rich_table.add_row(*(Text(escape.message(cell)) for cell in row), style=None if good else "red")
    return rich_table


def markdown(table: Table) -> str:
    """Return a Markdown table that ends with a newline."""
    rules = ["---" if name in _TEXT else "---:" for name in table.columns]
    return "".join(f"{escape.markdown_row(row)}\n" for row in (table.columns, rules, *table.rows))
