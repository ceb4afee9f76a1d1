"""report.json as a Markdown page."""

from __future__ import annotations

from typing import Any

from stages.messages.escape import markdown as escaped
from stages.messages.escape import markdown_row, shortened
from stages.report.rows import COLUMNS, layer_rows, summary

ARENA = (
    ("buffer", "name"),
    ("kind", "kind"),
    ("region", "region"),
    ("offset", "offset"),
    ("bytes", "bytes"),
    ("first layer", "first"),
    ("last layer", "last"),
)
WEIGHTS = (
    ("constant", "name"),
    ("read by layers", "layers"),
    ("region", "region"),
    ("offset", "offset"),
    ("bytes", "bytes"),
)


def markdown(report: dict[str, Any]) -> str:
    """The same table and figures as in the terminal, then the plan of arena and weights."""
    title = f"{shortened(report['model']['name'])} on {report['target']}"
    lines = [f"# {escaped(title)}", ""]
    lines += [f"- **{escaped(name)}**: {escaped(value)}" for name, value in summary(report)]
    lines += [f"- **warning**: {escaped(warning)}" for warning in report["warnings"]]
    lines += ["", "## Layers", "", markdown_row(COLUMNS), markdown_row(["---" for _ in COLUMNS])]
    lines += [markdown_row(cells) for cells in layer_rows(report)]
    lines += _plan("Arena", ARENA, report["arena"])
    lines += _plan("Weights", WEIGHTS, report["weights"])
    return "\n".join(lines) + "\n"


def _plan(title: str, columns: tuple[tuple[str, str], ...], rows: list[dict[str, Any]]) -> list[str]:
    """A part of the memory plan: where each buffer or constant lies."""
    lines = ["", f"## {title}", "", markdown_row([name for name, _ in columns]), markdown_row(["---" for _ in columns])]
    return [*lines, *(markdown_row([_cell(row[key]) for _, key in columns]) for row in rows)]


def _cell(value: Any) -> str:
    return shortened(", ".join(map(str, value)) if isinstance(value, list) else str(value))
