"""The tables of `doit bench suite=layers`, and docs/reference/layers.md, which has those of the stored figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from pipeline.commands.bench.layer_figures import LayerRow
from pipeline.commands.bench.page import replace_section
from pipeline.commands.bench.table import number
from pipeline.terminal.table import Table, markdown
from stages.messages.escape import markdown as escaped
from stages.system.asides import write_whole


def targets_of(rows: Iterable[LayerRow]) -> list[str]:
    """All targets that any of the rows was measured on, in the order in which they come."""
    return list(dict.fromkeys(target for row in rows for target in row.figures))


def family_table(rows: Sequence[LayerRow]) -> Table:
    """For each class and unit: how many layers, and on each target the median per unit, between least and most."""
    targets = targets_of(rows)
    groups: dict[tuple[str, str], list[LayerRow]] = {}
    for row in rows:
        groups.setdefault((row.family, _unit(row)), []).append(row)
    cells = []
    for (family, unit), group in groups.items():
        figures = []
        for target in targets:
            found = [per for row in group if (per := row.per_work(target)) is not None]
            figures.append(f"{median(found):.2f} ({min(found):.2f} to {max(found):.2f})" if found else "")
        cells.append((family, unit, str(len(group)), *figures))
    return _table(("model", "per", "layers", *targets), cells)


def layer_table(rows: Sequence[LayerRow]) -> Table:
    """Each layer: its multiply-accumulates or elements, and instructions for one of them on each target."""
    targets = targets_of(rows)
    cells = []
    for row in rows:
        per = (row.per_work(target) for target in targets)
        cells.append((row.name, f"{number(row.work)} {_unit(row)}s", *("" if p is None else f"{p:.3f}" for p in per)))
    return _table(("model", "work", *targets), cells)


def peer_tables(rows: Sequence[LayerRow]) -> list[tuple[str, Table]]:
    """For each peer and target: its instructions by ours, the least first; in the title how many, and the median."""
    found: dict[tuple[str, str], list[tuple[float, LayerRow]]] = {}
    for row in rows:
        for target, figure in row.figures.items():
            for peer, count in figure.peers.items():
                found.setdefault((peer, target), []).append((count / max(figure.instructions, 1), row))
    tables = []
    for (peer, target), pairs in found.items():
        ratios = [ratio for ratio, _ in pairs]
        behind = sum(ratio < 1 for ratio in ratios)
        layers = "1 layer" if len(pairs) == 1 else f"{len(pairs)} layers"
        title = f"{peer} by ours on {target}: {layers}, median {median(ratios):.2f}, {behind} below 1"
        cells = [
            (
                row.name,
                f"{ratio:.2f}",
                number(row.figures[target].instructions),
                number(row.figures[target].peers[peer]),
            )
            for ratio, row in sorted(pairs, key=lambda pair: (pair[0], pair[1].name))
        ]
        tables.append((title, _table(("model", "ratio", "ours", peer), cells)))
    return tables


def section(rows: Sequence[LayerRow]) -> str:
    """All tables, in Markdown."""
    parts = ["## Classes of layers\n", markdown(family_table(rows))]
    for title, table in peer_tables(rows):
        parts += [f"## {escaped(title)}\n", markdown(table)]
    parts += ["## All layers\n", markdown(layer_table(rows))]
    return "\n".join(parts)


def update_page(path: Path, rows: Sequence[LayerRow]) -> bool:
    """Writes the tables into the page; whether that changed it. Raises PipelineError."""
    text = path.read_text(encoding="utf-8")
    new = replace_section(text, section(rows), path.name)
    if new != text:
        write_whole(path, new)
    return new != text


def _unit(row: LayerRow) -> str:
    return "MAC" if row.macs else "element"


def _table(columns: tuple[str, ...], cells: Sequence[tuple[str, ...]]) -> Table:
    return Table(columns, tuple(cells), (True,) * len(cells))
