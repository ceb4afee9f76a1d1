"""A matrix's outcome as one HTML page: of two axes a grid, each cell a link to the report of its variant."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as html
from pathlib import Path
from typing import TYPE_CHECKING

from stages.messages import escape
from stages.system.installation import INSTALLATION

if TYPE_CHECKING:
    from pipeline.terminal.matrix_run import MatrixRow

_STYLE = INSTALLATION / "stages" / "report" / "html" / "templates" / "style.css"
_OWN = (
    "td.failed { background: var(--soft); color: var(--bad); white-space: normal; min-width: 220px; max-width: 260px } "
    "th { text-align: left }"
)


def matrix_page(name: str, part: str, rows: Sequence[MatrixRow], folder: Path) -> str:
    """The file. A link goes to `<variant>/report.html` below `folder`, where there is one."""
    axes = list(dict.fromkeys(axis for row in rows for axis in row.axes))
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(name)}</title><style>{_STYLE.read_text(encoding='utf-8')}{_OWN}</style></head><body>"
    )
    failed = sum(bool(row.error) for row in rows)
    verdict = f"{failed} of {len(rows)} failed" if failed else f"all {len(rows)} ran"
    told = f'<h1>{_text(name)}</h1><p class="verdict {"bad" if failed else "good"}">{verdict}</p><p>{_text(part)}</p>'
    table = _grid(axes, rows, folder) if len(axes) == 2 else _list(axes, rows, folder)
    return f'{head}\n{told}\n<div class="wide">{table}</div>\n</body></html>\n'


def _grid(axes: Sequence[str], rows: Sequence[MatrixRow], folder: Path) -> str:
    down, across = axes
    names = {axis: list(dict.fromkeys(row.axes.get(axis, "") for row in rows)) for axis in axes}
    cells = {(row.axes.get(down, ""), row.axes.get(across, "")): row for row in rows}
    titles = "".join(f"<th>{_text(one)}</th>" for one in names[across])
    lines = [f"<tr><th>{_text(down.rpartition('.')[2])}</th>{titles}</tr>"]
    for one in names[down]:
        found = (cells.get((one, other)) for other in names[across])
        inner = "".join("<td></td>" if row is None else _cell(row, folder) for row in found)
        lines.append(f"<tr><th>{_text(one)}</th>{inner}</tr>")
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
    told = _text(row.verdict)
    # What a variant is called stands in file names: nothing in it has to be quoted for a link but what HTML has.
    link = f"{row.name}/report.html"
    if (folder / link).is_file():
        told = f'<a href="{html(link)}">{told}</a>'
    return f"<td>{told}{lines}</td>"


def _text(value: str) -> str:
    return html(escape.line(value))
