"""The results as an HTML page, in the style of a run's report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as html
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.commands.fit.row import FITS, Row
from pipeline.commands.fit.table import energy, memory, notes, summary, time, verdict
from pipeline.errors import PipelineError
from stages.backends.timing.accuracy import accuracy_text
from stages.support.messages import escape
from stages.support.options.names import as_name
from stages.support.system.atomic_write import write_atomically
from stages.support.system.installation import INSTALLATION

if TYPE_CHECKING:
    from pipeline.commands.fit.request import Request

_STYLE = INSTALLATION / "stages" / "report" / "html" / "templates" / "style.css"
_PAGE_STYLE = (
    "th, td { white-space: normal; min-width: 60px } td:nth-child(2), td:nth-child(6), .meter { min-width: 110px } "
    "td:nth-child(8) { white-space: nowrap } .full i { background: var(--bad) } "
    "@media (max-width: 1000px) { th:nth-child(8), td:nth-child(8) { display: none } } "
    "@media (max-width: 800px) { th:nth-child(3), td:nth-child(3), th:nth-child(7), td:nth-child(7), "
    "td:nth-child(2) small, td:nth-child(6) small { display: none } "
    "th:nth-child(n), td:nth-child(n), .meter { min-width: 0; padding: 3px } "
    "td:nth-child(2) { overflow-wrap: anywhere; min-width: 76px } .meter { padding: 0 } } "
    "@media (max-width: 500px) { table { font-size: 12px } }"
)
_COLUMNS = ("verdict", "board", "core", "RAM", "ROM", "estimated time", "estimated energy", "memories")
_HOW = (
    "RAM and ROM are those of the linked firmware: used, and all memory of the board. Times are estimates by a timing "
    "model, or simulated with an accelerator; where neither is known, the instructions of one inference are listed. "
    "A range goes from no wait states to the worst case of a flash that the board does not describe. "
    "Energy is time multiplied by the current and voltage of the data sheet: an estimate too. "
    "Boards that fit come first, the fastest at the top."
)


def write_page(request: Request, rows: Sequence[Row], folder: Path) -> Path:
    """Write `<network>.html` into the folder, and return its path. Raises PipelineError."""
    path = folder / f"{as_name(request.name.replace(':', '-')) or 'network'}.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, fit_page(request, rows))
    except OSError as error:
        raise PipelineError(f"{escape.name(str(path), 200)} cannot be written: {error.strerror}") from None
    return path


def fit_page(request: Request, rows: Sequence[Row]) -> str:
    """Return `doit fit`'s result as an HTML page without external files."""
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(request.name)}</title><style>{_STYLE.read_text(encoding='utf-8')}{_PAGE_STYLE}</style></head><body>"
    )
    some = any(row.verdict == FITS for row in rows)
    header = (
        f"<header><h1>{_text(request.name)} <span>on {len(rows)} boards</span></h1>"
        f'<p class="verdict {"good" if some else "bad"}">{_text(summary(rows))}</p><p>{_HOW}</p></header>'
    )
    warnings = "".join(f'<p class="warning">{_text(note)}</p>' for note in notes(request, rows))
    titles = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    body = "\n".join(map(_row, rows))
    table = f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>\n{body}\n</tbody></table></div>'
    return f"{head}\n{header}\n{warnings}\n{table}\n</body></html>\n"


def _row(row: Row) -> str:
    cells = (
        f'<td class="{"good" if row.verdict == FITS else "bad"}">{_text(verdict(row))}</td>',
        f"<td>{_text(row.board)}<br><small>{_text(row.title)}</small></td>",
        f"<td>{_text(row.core)}</td>",
        f"<td>{_memory(row, ram=True)}</td>",
        f"<td>{_memory(row, ram=False)}</td>",
        f"<td>{_text(time(row))}{_timing(row)}</td>",
        f"<td>{_text(energy(row))}</td>",
        f"<td><small>{'<br>'.join(_regions(row))}</small></td>",
    )
    return f"<tr>{''.join(cells)}</tr>"


def _memory(row: Row, *, ram: bool) -> str:
    """Return the text of `memory` with a bar of the used share; the bar is red if it is full."""
    used, available = (row.ram_bytes, row.ram_available_bytes) if ram else (row.rom_bytes, row.rom_available_bytes)
    text = _text(memory(row, ram=ram))
    if used is None or not available:
        return text
    missing = row.missing_ram_bytes if ram else row.missing_rom_bytes
    share = min(100.0, 100 * used / available)
    full = " full" if missing else ""
    bar = f'<div class="meter{full}"><i style="width:{share:.1f}%"></i></div>'
    return f"{text} <small>{100 * used / available:.0f}&nbsp;%</small>{bar}"


def _timing(row: Row) -> str:
    if not row.timing:
        return ""
    clock = f" at {row.clock_hz / 1e6:g} MHz" if row.clock_hz and row.most_ms else ""
    silicon = "" if row.instructions is None else f"<br>{_text(accuracy_text(row.accuracy))}"
    return f"<br><small>{_text(row.timing)}{clock}{silicon}</small>"


def _regions(row: Row) -> list[str]:
    return [f"{_text(region['name'])} {region['used']:,} of {region['length']:,}" for region in row.regions]


def _text(value: str) -> str:
    return html(escape.line(value))
