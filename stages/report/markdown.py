"""report.json as a Markdown page."""

from __future__ import annotations

from typing import Any

from stages.escape import markdown as escaped
from stages.escape import markdown_row, shortened
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


def markdown(report: dict[str, Any]) -> str:
    """The same table and figures as in the terminal, then the arena's plan."""
    title = f"{shortened(report['model']['name'])} on {report['target']}"
    lines = [f"# {escaped(title)}", ""]
    lines += [f"- **{escaped(name)}**: {escaped(value)}" for name, value in summary(report)]
    lines += [f"- **warning**: {escaped(warning)}" for warning in report["warnings"]]
    lines += ["", "## Layers", "", markdown_row(COLUMNS), markdown_row(["---" for _ in COLUMNS])]
    lines += [markdown_row(cells) for cells in layer_rows(report)]
    lines += ["", "## Arena", "", markdown_row([title for title, _ in ARENA]), markdown_row(["---" for _ in ARENA])]
    lines += [markdown_row([shortened(str(block[key])) for _, key in ARENA]) for block in report["arena"]]
    return "\n".join(lines) + "\n"
