"""The table of all cases, with baselines."""

from collections.abc import Iterable

from pipeline.commands.bench.cases import Case
from pipeline.commands.bench.record import CYCLES, Record
from pipeline.commands.bench.run import Outcome
from pipeline.commands.bench.suite import PublishedBaseline
from pipeline.terminal.table import Table

_CYCLES = ("cycles", "at most", "MACs per cycle", *CYCLES, "predicted", "outputs unlike LiteRT's")
_COLUMNS = ("model", "target", "verdict", "instructions", "per MAC", "arena", "RAM", "ROM", "others", "ratio")


def case_table(outcomes: Iterable[Outcome]) -> Table:
    """Return a row per case; memory in bytes. `ratio` is the baseline's count ÷ ours."""
    outcomes = list(outcomes)
    rows = tuple(_case_row(outcome) for outcome in outcomes)
    good = tuple(not outcome.failed for outcome in outcomes)
    # Omit empty columns of baselines, as with model=.
    columns = [n for n, name in enumerate(_COLUMNS) if name not in ("others", "ratio") or any(row[n] for row in rows)]
    return Table(tuple(_COLUMNS[n] for n in columns), tuple(tuple(row[n] for n in columns) for row in rows), good)


def cycles_table(outcomes: Iterable[Outcome]) -> Table | None:
    """Return a row per case with an accelerator: its cycles by unit; None without such cases.

    `core` plus `waiting` (the core waits) are all cycles; `engine` and `dma` run in parallel with them.
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
    """Return the sources of the baselines as `name: source`, each once."""
    return list(dict.fromkeys(f"{baseline.name}: {baseline.source}" for case in cases for baseline in case.baselines))


def number(value: int | None) -> str:
    """Return a number such as `1,000`, '' for None."""
    return "" if value is None else f"{value:,}"


def _case_row(outcome: Outcome) -> tuple[str, ...]:
    case, record = outcome.case, outcome.record
    head = (case.row, case.target)
    if record is None or outcome.failed:
        verdict = f"failed: {outcome.first_line}" if outcome.failed else f"skipped: {outcome.first_line}"
        return (*head, verdict, *[""] * (len(_COLUMNS) - 3))
    memory = [number(record.memory.get(key)) for key in ("arena_bytes", "ram_bytes", "rom_bytes")]
    count = record.instructions
    baselines = "\n".join(_baseline_figure(baseline) for baseline in case.baselines) or case.note
    ratios = "\n".join(_ratio(baseline, record) for baseline in case.baselines)
    per_mac = f"{count / record.macs:.3f}" if count and record.macs else ""
    return (*head, verdict_of(record), number(count), per_mac, *memory, baselines, ratios.rstrip())


def recipe_table(outcomes: Iterable[Outcome]) -> Table:
    """Return a row per measured case, by recipe and target, as `doit run` measures them."""
    rows = []
    for outcome in outcomes:
        case, record = outcome.case, outcome.record
        if record is not None and not outcome.failed:
            count = f"{number(record.instructions)}{'' if record.cycles is None else ' cycles'}"
            memory = [number(record.memory.get(key)) for key in ("ram_bytes", "rom_bytes")]
            baselines = "\n".join(_baseline_figure(baseline) for baseline in case.baselines)
            ratios = "\n".join(_ratio(baseline, record) for baseline in case.baselines)
            rows.append((case.base, case.target, count, *memory, baselines, ratios))
    columns = ("recipe", "target", "instructions", "RAM", "ROM", "others", "ratio")
    return Table(columns, tuple(rows), (True,) * len(rows))


def _ratio(baseline: PublishedBaseline, record: Record) -> str:
    """Return the baseline's count ÷ ours; '' if one is in instructions, the other in cycles."""
    unit = "instructions" if record.cycles is None else "cycles"
    if not record.instructions or baseline.unit != unit:
        return ""
    return f"{baseline.units(record.macs) / record.instructions:.2f}"


def verdict_of(record: Record) -> str:
    """Return such as `0 of 4,004, 31 layers`: mismatches, output values, compared layers.

    For float32 outputs, adds the largest relative error; `engine` means compared with the accelerator's arithmetic.
    """
    verify = record.verify
    text = f"{verify['mismatches']:,} of {verify['outputs_checked']:,}, {verify['layers_checked']} layers"
    if record.distance is not None:
        return f"{text}, engine"
    if record.max_relative is None:
        return text
    return f"{text}, float within {record.max_relative:.1g}" if record.max_relative else f"{text}, float equal"


def _baseline_figure(baseline: PublishedBaseline) -> str:
    unit = "" if baseline.unit == "instructions" else f" {baseline.unit}"
    figure = f"{baseline.per_mac:.3f} per MAC" if baseline.value is None else f"{baseline.value:,}"
    return f"{baseline.name} {figure}{unit}"
