"""report.json as a rich table."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from stages.messages import escape
from stages.report.rows import COLUMNS, layer_rows, summary

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_RIGHT = {"#", "MACs", "instructions", "per MAC", "share"}
_NARROW = {"#", "op", "instructions", "per MAC", "share"}


def render(report: dict[str, Any], *, width: int = 160) -> RenderableType:
    """The layers and, below, verdict, instructions and memory. Below 120 columns only the telling columns remain."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    shown = [name for name in COLUMNS if width >= 120 or name in _NARROW | {"kernel"}]
    table = Table()
    for name in shown:
        table.add_column(name, justify="right" if name in _RIGHT else "left", no_wrap=name in _RIGHT)
    for row in layer_rows(report):
        table.add_row(*(Text(escape.line(cell)) for name, cell in zip(COLUMNS, row, strict=True) if name in shown))
    title = Text(f"{escape.name(report['model']['name'])} on {report['target']}", style="italic")
    below = [*summary(report), *(("warning", warning) for warning in report["warnings"])]
    return Group(title, table, *(_line(name, value, width) for name, value in below))


def _line(name: str, value: str, width: int) -> Text:
    """Name and value, the value wrapped in a column of its own; no blanks at the ends of lines."""
    from rich.text import Text

    indent = 14
    wrapped = textwrap.wrap(escape.line(value), max(width - indent, 20), break_long_words=False)
    return Text.assemble((f"{escape.line(name):<{indent}}", "bold"), f"\n{' ' * indent}".join(wrapped))
