"""The table of every case with what others need."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.commands.bench.cases import Case
from pipeline.commands.bench.record import CYCLES, Record
from pipeline.commands.bench.run import Outcome
from pipeline.commands.bench.suite import Peer
from pipeline.terminal.table import Table

_CYCLES = ("cycles", "at most", "MACs per cycle", *CYCLES, "predicted", "outputs unlike LiteRT's")
_COLUMNS = ("model", "target", "verdict", "instructions", "per MAC", "arena", "RAM", "ROM", "others", "ratio")


def case_table(outcomes: Iterable[Outcome]) -> Table:
    """One row per case; arena, RAM and ROM in bytes. `ratio` is the baseline's figure divided by ours, in one unit."""
    outcomes = list(outcomes)
    rows = tuple(_case_row(outcome) for outcome in outcomes)
    good = tuple(not outcome.failed for outcome in outcomes)
    # Without figures of others, as with --models, their columns say nothing.
    kept = [n for n, name in enumerate(_COLUMNS) if name not in ("others", "ratio") or any(row[n] for row in rows)]
    return Table(tuple(_COLUMNS[n] for n in kept), tuple(tuple(row[n] for n in kept) for row in rows), good)


def cycles_table(outcomes: Iterable[Outcome]) -> Table | None:
    """One row per case on a board with an accelerator: its cycles, by unit; None where there is no such case.

    `core` and `waiting` (of the core, for the others) are all of the cycles; `engine` and `dma` work meanwhile.
    """
    rows = []
    for outcome in outcomes:
        case, record = outcome.case, outcome.record
        if record is None or record.cycles is None or record.instructions is None or outcome.failed:
            continue
        rate = f"{record.macs / record.instructions:.1f}"
        units = (number(record.cycles[unit]) for unit in (*CYCLES, "predicted"))
        figures = (number(record.instructions), number(case.at_most), rate, *units, _distance(record))
        rows.append((case.row, case.target, *figures))
    return Table(("model", "target", *_CYCLES), tuple(rows), (True,) * len(rows)) if rows else None


def _distance(record: Record) -> str:
    if record.distance is None:
        return "none"
    return f"{100 * record.distance['share']:.3g} %, by {record.distance['largest']:.3g} at most"


def sources(cases: Iterable[Case]) -> list[str]:
    """Sources of the other tools' figures: `name: source`, each once."""
    return list(dict.fromkeys(f"{peer.name}: {peer.source}" for case in cases for peer in case.peers))


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
    ratios = "\n".join(_ratio(peer, record) for peer in case.peers)
    per_mac = f"{count / record.macs:.3f}" if count and record.macs else ""
    return (*head, verdict_of(record), number(count), per_mac, *memory, others, ratios.rstrip())


def recipe_table(outcomes: Iterable[Outcome]) -> Table:
    """Table of measured cases by recipe and target, as `doit run RECIPE target=TARGET` gives them."""
    rows = []
    for outcome in outcomes:
        case, record = outcome.case, outcome.record
        if record is not None and not outcome.failed:
            count = f"{number(record.instructions)}{'' if record.cycles is None else ' cycles'}"
            memory = [number(record.memory.get(key)) for key in ("ram_bytes", "rom_bytes")]
            others = "\n".join(_other(peer) for peer in case.peers)
            ratios = "\n".join(_ratio(peer, record) for peer in case.peers)
            rows.append((case.base, case.target, count, *memory, others, ratios))
    columns = ("recipe", "target", "instructions", "RAM", "ROM", "others", "ratio")
    return Table(columns, tuple(rows), (True,) * len(rows))


def _ratio(peer: Peer, record: Record) -> str:
    """Return the baseline's figure divided by ours, or '' if one has instructions and the other cycles."""
    unit = "instructions" if record.cycles is None else "cycles"
    if not record.instructions or peer.unit != unit:
        return ""
    return f"{peer.units(record.macs) / record.instructions:.2f}"


def verdict_of(record: Record) -> str:
    """`0 of 4,004, 31 layers`: mismatches in the output values, and how many layers were compared as well.

    Float32 outputs match when they are near enough; how near they are is added. `engine`: they are compared with the
    accelerator's own arithmetic.
    """
    verify = record.verify
    text = f"{verify['mismatches']:,} of {verify['outputs_checked']:,}, {verify['layers_checked']} layers"
    if record.distance is not None:
        return f"{text}, engine"
    if record.max_relative is None:
        return text
    return f"{text}, float within {record.max_relative:.1g}" if record.max_relative else f"{text}, float equal"


def _other(peer: Peer) -> str:
    unit = "" if peer.unit == "instructions" else f" {peer.unit}"
    figure = f"{peer.per_mac:.3f} per MAC" if peer.value is None else f"{peer.value:,}"
    return f"{peer.name} {figure}{unit}"
