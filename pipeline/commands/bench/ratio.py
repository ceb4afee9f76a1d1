"""Ratios that suite.yaml lists: instructions of two networks, ours and those of baselines."""

from collections.abc import Mapping, Sequence

from pipeline.commands.bench.record import Record
from pipeline.commands.bench.suite import Ratio, Suite, published_baseline
from pipeline.commands.bench.table import number
from pipeline.terminal.table import Table

Records = Mapping[tuple[str, str], Record]


def ratio_tables(suite: Suite, records: Records) -> list[tuple[str, Table]]:
    """Return titles and tables, one per pair of sides: counts, ratios, baselines' figures.

    Omits ratios without any measured network, and empty tables.
    """
    groups: dict[tuple[str, str], list[Ratio]] = {}
    for ratio in suite.ratios:
        if any(count is not None for count in _counts(ratio, records)):
            groups.setdefault(ratio.sides, []).append(ratio)
    return [(" against ".join(sides), _table(suite, sides, ratios, records)) for sides, ratios in groups.items()]


def short_ratios(suite: Suite, records: Records) -> list[str]:
    """Return a line per ratio below its `at_least`."""
    lines = []
    for ratio in suite.ratios:
        over, under = _counts(ratio, records)
        if ratio.at_least is not None and over is not None and under and over / under < ratio.at_least:
            titles = " against ".join(ratio.sides)
            lines.append(f"{ratio.name}, {titles}: {over:,} / {under:,} is {over / under:.4g}, below {ratio.at_least}")
    return lines


def _table(suite: Suite, sides: tuple[str, str], ratios: Sequence[Ratio], records: Records) -> Table:
    columns = (*sides, "ratio")
    rows, names = [], ""
    for ratio in ratios:
        baselines = [published_baseline(suite, side) for side in (ratio.numerator, ratio.denominator)]
        names = names or next((baseline.name for baseline in baselines if baseline), "")
        baseline_cells = _cells(*(baseline.value if baseline else None for baseline in baselines))
        rows.append((ratio.name, *_cells(*_counts(ratio, records)), *baseline_cells))
    titles = ("network", *columns, *(f"{names} {name}" for name in columns)) if names else ("network", *columns)
    return Table(titles, tuple(row[: len(titles)] for row in rows), (True,) * len(rows))


def _counts(ratio: Ratio, records: Records) -> tuple[int | None, int | None]:
    """Return instructions of numerator and denominator; None if not measured."""
    over, under = (records.get((side.row, side.target)) for side in (ratio.numerator, ratio.denominator))
    return over.instructions if over else None, under.instructions if under else None


def _cells(over: int | None, under: int | None) -> tuple[str, str, str]:
    quotient = f"{over / under:.2f}" if over is not None and under else ""
    return number(over), number(under), quotient
