"""The results in a terminal: a table of rich, or plain columns in a file or pipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pipeline.commands.fit.row import FITS, TOO_LARGE, Row
from stages.report.estimate import short, span
from stages.support.messages import escape

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeline.commands.fit.request import Request

COLUMNS = ("verdict", "board", "RAM", "ROM", "est. time", "est. energy")
_RIGHT = ("RAM", "ROM", "est. time", "est. energy")
_BINARY = ((1 << 20, "M"), (1 << 10, "K"))


@dataclass(frozen=True)
class FitTable:
    """Title, cells and notes, as a renderable.

    `good` is False for boards that the network does not fit.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    good: tuple[bool, ...]
    notes: tuple[str, ...]

    def __rich__(self) -> RenderableType:
        from rich.box import SIMPLE_HEAD
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for name in self.columns:
            side: Literal["left", "right"] = "right" if name in _RIGHT else "left"
            # Verdicts and estimates wrap, so that a table has 80 columns.
            is_whole = name in ("board", "RAM", "ROM")
            table.add_column(name, justify=side, no_wrap=is_whole, min_width=12 if name == "verdict" else None)
        for (verdict, *cells), good in zip(self.rows, self.good, strict=True):
            table.add_row(Text(verdict, style="green" if good else "red"), *map(Text, cells))
        return Group(Text(self.title, style="bold"), table, *(Text(note) for note in self.notes))

    def plain(self) -> str:
        """Return the text without styles, a line for each board."""
        lines = (self.columns, *self.rows)
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.columns))]
        texts = [self.title]
        for line in lines:
            cells = (
                cell.rjust(width) if name in _RIGHT else cell.ljust(width)
                for cell, width, name in zip(line, widths, self.columns, strict=True)
            )
            texts.append("  ".join(cells).rstrip())
        return "\n".join([*texts, *self.notes, ""])


def fit_table(request: Request, rows: Sequence[Row], width: int) -> FitTable:
    """Return the table of all rows, with energy if it is known of a board."""
    columns = COLUMNS if any(row.most_uj is not None for row in rows) else COLUMNS[:-1]
    cells = tuple(
        (
            *(verdict(row), escape.name(row.board), memory(row, ram=True), memory(row, ram=False)),
            *(time(row), energy(row))[: len(columns) - 4],
        )
        for row in rows
    )
    return FitTable(
        title(request, rows), columns, cells, tuple(row.verdict == FITS for row in rows), notes(request, rows)
    )


def title(request: Request, rows: Sequence[Row]) -> str:
    """Return the title: `kws: fits 14 of 17 boards`."""
    return f"{escape.name(request.name)}: {summary(rows)}"


def summary(rows: Sequence[Row]) -> str:
    """Return `fits 14 of 17 boards`."""
    count = sum(row.verdict == FITS for row in rows)
    return f"fits {count} of {len(rows)} board{'s' if len(rows) > 1 else ''}"


def notes(request: Request, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the notes on the network, and the reasons of rows without figures.

    Equal reasons are one line.
    """
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.reason and (row.verdict != TOO_LARGE or not row.missing):
            reasons.setdefault(escape.line(row.reason.splitlines()[0]), []).append(escape.name(row.board))
    return (
        *(f"note: {note}" for note in request.notes),
        *(limited(row) for row in rows if row.arena_limit is not None),
        *(f"{', '.join(names)}: {reason}" for reason, names in reasons.items()),
    )


def limited(row: Row) -> str:
    """Return such as `b: needs set=memory.arena_limit=6512 in doit run, which costs …`."""
    cost = "no more" if not row.extra or row.extra < 0.0005 else f"{100 * row.extra:.1f} % more"
    option = f"set=memory.arena_limit={row.arena_limit}"
    return f"{escape.name(row.board)}: needs {option} in doit run, which costs {cost} instructions"


def verdict(row: Row) -> str:
    """Return `fits`, `fits, limited`, or `does not fit, by 920 bytes RAM and 20 bytes ROM`."""
    missing = (("RAM", row.missing_ram_bytes), ("ROM", row.missing_rom_bytes))
    parts = [f"{count:,} bytes {name}" for name, count in missing if count]
    if row.arena_limit is not None:
        return f"{row.verdict}, limited"
    return f"{row.verdict}, by {' and '.join(parts)}" if parts else row.verdict


def memory(row: Row, *, ram: bool) -> str:
    """Return `10,028 of 640K`; `-` if the used bytes are unknown."""
    used, available = (row.ram_bytes, row.ram_available_bytes) if ram else (row.rom_bytes, row.rom_available_bytes)
    return f"{'-' if used is None else f'{used:,}'} of {_size(available or 0)}"


def time(row: Row) -> str:
    """Return the time: `28.4 ms` or `12 to 31 ms`.

    Without a clock `2.9 M cycles`, without a timing model `2.9 M instr.`, else `-`.
    """
    if time := span(row.estimated_ms, row.least_ms, row.most_ms):
        return f"{time} ms"
    if row.estimated_cycles is not None:
        return f"{short(row.estimated_cycles / 1e6)} M cycles"
    return "-" if row.instructions is None else f"{short(row.instructions / 1e6)} M instr."


def energy(row: Row) -> str:
    """Return `1,430 µJ` or `690 to 1,430 µJ`; '' if the board's power is unknown."""
    amount = span(row.estimated_uj, row.least_uj, row.most_uj)
    return f"{amount} µJ" if amount else ""


def _size(count: int) -> str:
    return next((f"{count // unit:,}{letter}" for unit, letter in _BINARY if count and not count % unit), f"{count:,}")
