"""The results of a matrix as an HTML page: a grid of two axes, with links to the reports."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as html
from pathlib import Path
from typing import TYPE_CHECKING

from stages.support.messages import escape
from stages.support.system.installation import INSTALLATION

if TYPE_CHECKING:
    from pipeline.terminal.matrix_row import MatrixRow

_STYLE = INSTALLATION / "stages" / "report" / "html" / "templates" / "style.css"
_PAGE_STYLE = (
    "td.failed { background: var(--soft); color: var(--bad); white-space: normal; min-width: 220px; max-width: 260px } "
    "th { text-align: left }"
)


def matrix_page(name: str, part: str, rows: Sequence[MatrixRow], folder: Path) -> str:
    """Return the page. Cells link to `<variant>/report.html` below `folder` if it exists."""
    axes = list(dict.fromkeys(axis for row in rows for axis in row.axes))
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(name)}</title><style>{_STYLE.read_text(encoding='utf-8')}{_PAGE_STYLE}</style></head><body>"
    )
    failed = sum(bool(row.error) for row in rows)
    verdict = f"{failed} of {len(rows)} failed" if failed else f"all {len(rows)} ran"
    header = f'<h1>{_text(name)}</h1><p class="verdict {"bad" if failed else "good"}">{verdict}</p><p>{_text(part)}</p>'
    table = _grid(axes, rows, folder) if len(axes) == 2 else _list(axes, rows, folder)
    return f'{head}\n{header}\n<div class="wide">{table}</div>\n</body></html>\n'


def _grid(axes: Sequence[str], rows: Sequence[MatrixRow], folder: Path) -> str:
    down, across = axes
    names = {axis: list(dict.fromkeys(row.axes.get(axis, "") for row in rows)) for axis in axes}
    cells = {(row.axes.get(down, ""), row.axes.get(across, "")): row for row in rows}
    titles = "".join(f"<th>{_text(label)}</th>" for label in names[across])
    lines = [f"<tr><th>{_text(down.rpartition('.')[2])}</th>{titles}</tr>"]
    for label in names[down]:
        cell_rows = (cells.get((label, column)) for column in names[across])
        inner = "".join("<td></td>" if row is None else _cell(row, folder) for row in cell_rows)
        lines.append(f"<tr><th>{_text(label)}</th>{inner}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _list(axes: Sequence[str], rows: Sequence[MatrixRow], folder: Path) -> str:
    titles = "".join(f"<th>{_text(axis.rpartition('.')[2])}</th>" for axis in axes)
    lines = [f"<tr>{titles}<th></th></tr>"]
    for row in rows:
        places = "".join(f"<td>{_text(row.axes.get(axis, ''))}</td>" for axis in axes)
        lines.append(f"<tr>{places}{_cell(row, folder)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _cell(row: MatrixRow, folder: Path) -> str:
    if row.error:
        return f'<td class="failed">{_text(row.error.splitlines()[0])}</td>'
    figures = (("instructions", row.instructions), ("RAM", row.ram_bytes), ("ROM", row.rom_bytes))
    lines = "".join(f"<br><small>{title} {value:,}</small>" for title, value in figures if value is not None)
    content = _text(row.verdict)
    # Variant names are valid file names: in a link, only HTML characters need escaping.
    link = f"{row.name}/report.html"
    if (folder / link).is_file():
        content = f'<a href="{html(link)}">{content}</a>'
    return f"<td>{content}{lines}</td>"


def _text(value: str) -> str:
    return html(escape.line(value))
