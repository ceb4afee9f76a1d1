"""report.json as a Markdown page."""

from __future__ import annotations

from typing import Any

from stages.report.rows import COLUMNS, layer_rows, summary

ARENA = (
    ("buffer", "name"),
    ("kind", "kind"),
    ("offset", "offset"),
    ("bytes", "bytes"),
    ("first layer", "first"),
    ("last layer", "last"),
)


def markdown(report: dict[str, Any]) -> str:
    """The same table and figures as in the terminal, then the arena's plan."""
    lines = [f"# {report['model']['name']} on {report['target']}", ""]
    lines += [f"- **{name}**: {value}" for name, value in summary(report)]
    lines += [f"- **warning**: {warning}" for warning in report["warnings"]]
    lines += ["", "## Layers", "", _row(COLUMNS), _row("---" for _ in COLUMNS)]
    lines += [_row(cells) for cells in layer_rows(report)]
    lines += ["", "## Arena", "", _row(title for title, _ in ARENA), _row("---" for _ in ARENA)]
    lines += [_row(block[key] for _, key in ARENA) for block in report["arena"]]
    return "\n".join(lines) + "\n"


def _row(cells: Any) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
