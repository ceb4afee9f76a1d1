"""Tables of `doit bench suite=layers`, and the page docs/reference/layers.md."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from pipeline.commands.bench.layer_figures import LayerRow
from pipeline.commands.bench.page import replace_section
from pipeline.commands.bench.table import number
from pipeline.terminal.table import Table, markdown
from stages.support.messages.escape import markdown as escaped
from stages.support.system.atomic_write import write_atomically


def targets_of(rows: Iterable[LayerRow]) -> list[str]:
    """Return all targets of the rows, in order of appearance."""
    return list(dict.fromkeys(target for row in rows for target in row.figures))


def class_table(rows: Sequence[LayerRow]) -> Table:
    """Return a row per class and unit: layers; median, least and most per unit by target."""
    targets = targets_of(rows)
    groups: dict[tuple[str, str], list[LayerRow]] = {}
    for row in rows:
        groups.setdefault((row.layer_class, _unit(row)), []).append(row)
    cells = []
    for (layer_class, unit), group in groups.items():
        figures = []
        for target in targets:
            costs = [per for row in group if (per := row.per_work(target)) is not None]
            figures.append(f"{median(costs):.2f} ({min(costs):.2f} to {max(costs):.2f})" if costs else "")
        cells.append((layer_class, unit, str(len(group)), *figures))
    return _table(("model", "per", "layers", *targets), cells)


def layer_table(rows: Sequence[LayerRow]) -> Table:
    """Return a row per layer: its work, and instructions per MAC or element by target."""
    targets = targets_of(rows)
    cells = []
    for row in rows:
        per = (row.per_work(target) for target in targets)
        cells.append((row.name, f"{number(row.work)} {_unit(row)}s", *("" if p is None else f"{p:.3f}" for p in per)))
    return _table(("model", "work", *targets), cells)


def baseline_tables(rows: Sequence[LayerRow]) -> list[tuple[str, Table]]:
    """Return titles and tables by baseline and target: ratios of its instructions to ours."""
    pairs_of: dict[tuple[str, str], list[tuple[float, LayerRow]]] = {}
    for row in rows:
        for target, figure in row.figures.items():
            for baseline, count in figure.peers.items():
                pairs_of.setdefault((baseline, target), []).append((count / max(figure.instructions, 1), row))
    tables = []
    for (baseline, target), pairs in pairs_of.items():
        ratios = [ratio for ratio, _ in pairs]
        behind = sum(ratio < 1 for ratio in ratios)
        layers = "1 layer" if len(pairs) == 1 else f"{len(pairs)} layers"
        title = f"{baseline} ÷ ours on {target}: {layers}, median {median(ratios):.2f}, {behind} below 1"
        cells = [
            (
                row.name,
                f"{ratio:.2f}",
                number(row.figures[target].instructions),
                number(row.figures[target].peers[baseline]),
            )
            for ratio, row in sorted(pairs, key=lambda pair: (pair[0], pair[1].name))
        ]
        tables.append((title, _table(("model", "ratio", "ours", baseline), cells)))
    return tables


def section(rows: Sequence[LayerRow]) -> str:
    """Return all tables in Markdown."""
    parts = ["## Classes of layers\n", markdown(class_table(rows))]
    for title, table in baseline_tables(rows):
        parts += [f"## {escaped(title)}\n", markdown(table)]
    parts += ["## All layers\n", markdown(layer_table(rows))]
    return "\n".join(parts)


def update_page(path: Path, rows: Sequence[LayerRow]) -> bool:
    """Write the tables into the page. Returns whether it changed. Raises PipelineError."""
    text = path.read_text(encoding="utf-8")
    new = replace_section(text, section(rows), path.name)
    if new != text:
        write_atomically(path, new)
    return new != text


def _unit(row: LayerRow) -> str:
    return "MAC" if row.macs else "element"


def _table(columns: tuple[str, ...], cells: Sequence[tuple[str, ...]]) -> Table:
    return Table(columns, tuple(cells), (True,) * len(cells))
