"""The table of every case with what others need. As text cells, for rich, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.bench.cases import Case
from pipeline.bench.record import Record
from pipeline.bench.run import Outcome
from pipeline.bench.suite import Peer

if TYPE_CHECKING:
    from rich.console import RenderableType

_TEXT = {"model", "target", "verdict", "others", "network"}
_COLUMNS = ("model", "target", "verdict", "instructions", "per MAC", "arena", "RAM", "ROM", "others", "ratio")


@dataclass(frozen=True)
class Table:
    """Titles and cells; a cell may have several lines. `good` says of each row whether it is as it should be."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    good: tuple[bool, ...]


def case_table(outcomes: Iterable[Outcome]) -> Table:
    """One row per case, bytes for arena, RAM and ROM. `ratio` is what others need, by what we need."""
    outcomes = list(outcomes)
    rows = tuple(_case_row(outcome) for outcome in outcomes)
    good = tuple(not outcome.failed for outcome in outcomes)
    # Without figures of others, as with --models, their columns say nothing.
    kept = [n for n, name in enumerate(_COLUMNS) if name not in ("others", "ratio") or any(row[n] for row in rows)]
    return Table(tuple(_COLUMNS[n] for n in kept), tuple(tuple(row[n] for n in kept) for row in rows), good)


def sources(cases: Iterable[Case]) -> list[str]:
    """Who the others are: `name: source`, each once."""
    return list(dict.fromkeys(f"{peer.name}: {peer.source}" for case in cases for peer in case.peers))


def render(table: Table, title: str) -> RenderableType:
    """As a rich table; rows that are not good are red."""
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(title=title, title_justify="left")
    for name in table.columns:
        left = name in _TEXT
        # An error's line may be long; the figures must keep their room.
        widest = 44 if name == "verdict" else None
        made.add_column(name, justify="left" if left else "right", no_wrap=not left, max_width=widest)
    for row, good in zip(table.rows, table.good, strict=True):
        made.add_row(*(Text(cell) for cell in row), style=None if good else "red")
    return made


def markdown(table: Table) -> str:
    """As a Markdown table that ends with a newline."""
    rules = ["---" if name in _TEXT else "---:" for name in table.columns]
    return "".join(_markdown_row(row) for row in (table.columns, rules, *table.rows))


def number(value: int | None) -> str:
    """`1,000`, or nothing where there is no figure."""
    return "" if value is None else f"{value:,}"


def _case_row(outcome: Outcome) -> tuple[str, ...]:
    case, record = outcome.case, outcome.record
    head = (case.row, case.target)
    if record is None or outcome.failed:
        verdict = f"failed: {outcome.first_line}" if outcome.failed else f"skipped: {outcome.first_line}"
        return (*head, verdict, *[""] * (len(_COLUMNS) - 3))
    memory = [number(record.memory.get(key)) for key in ("arena_bytes", "ram_bytes", "rom_bytes")]
    count = record.instructions
    others = "\n".join(_other(peer) for peer in case.peers)
    ratios = "\n".join(f"{peer.units(record.macs) / count:.2f}" if count else "" for peer in case.peers)
    per_mac = f"{count / record.macs:.3f}" if count and record.macs else ""
    return (*head, verdict_of(record), number(count), per_mac, *memory, others, ratios)


def verdict_of(record: Record) -> str:
    """`0 of 4,004, 31 layers`: mismatches in the output values, and how many layers were compared as well.

    Float32 outputs match when they are near enough; how near they are is added.
    """
    verify = record.verify
    text = f"{verify['mismatches']:,} of {verify['outputs_checked']:,}, {verify['layers_checked']} layers"
    if record.max_relative is None:
        return text
    return f"{text}, float within {record.max_relative:.1g}" if record.max_relative else f"{text}, float equal"


def _other(peer: Peer) -> str:
    unit = "" if peer.unit == "instructions" else f" {peer.unit}"
    figure = f"{peer.per_mac:.3f} per MAC" if peer.value is None else f"{peer.value:,}"
    return f"{peer.name} {figure}{unit}"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", "<br>") for cell in cells) + " |\n"
