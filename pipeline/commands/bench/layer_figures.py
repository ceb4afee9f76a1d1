"""Figures of `doit bench suite=layers`, and docs/layers.json, which stores them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeline.commands.bench.check import TOLERANCE, Verdict, change, fell
from pipeline.errors import PipelineError
from stages.support.system.atomic_write import write_atomically
from stages.support.system.json_text import parsed_json

FORMAT = 1
_RENEW = "update it with `doit bench suite=layers --update`"


@dataclass(frozen=True)
class Figure:
    """One layer on one target: instructions of the first inference, and its kernels.

    peers  instructions of baselines, by name
    """

    instructions: int
    kernels: tuple[str, ...]
    peers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LayerRow:
    """A layer, named `CLASS/NAME` like its recipe, with its figures by target.

    elements  number of elements of its largest input or output
    """

    name: str
    macs: int
    elements: int
    figures: Mapping[str, Figure]

    @property
    def layer_class(self) -> str:
        """The first part of its name."""
        return self.name.partition("/")[0]

    @property
    def work(self) -> int:
        """Multiply-accumulates, or elements if there are none."""
        return self.macs or self.elements

    def per_work(self, target: str) -> float | None:
        """Return instructions per MAC or element; None for a target without a figure."""
        figure = self.figures.get(target)
        return None if figure is None else figure.instructions / self.work


Rows = Mapping[str, LayerRow]


def merged(stored: Rows, measured: Rows, names: Iterable[str], measured_baseline: str = "") -> dict[str, LayerRow]:
    """Return the stored figures updated by measured ones, for the layers in `names`.

    Figures of a baseline are kept if the layer's work is unchanged. `measured_baseline` was just measured: its stored
    figures are replaced.
    """
    result = {}
    for name in names:
        old, new = stored.get(name), measured.get(name)
        if new is None or old is None or (old.macs, old.elements) != (new.macs, new.elements):
            row = new or old
        else:
            figures = dict(old.figures)
            for target, figure in new.figures.items():
                stored_peers = old.figures[target].peers if target in old.figures else {}
                kept = {peer: count for peer, count in stored_peers.items() if peer != measured_baseline}
                figures[target] = replace(figure, peers={**kept, **figure.peers})
            row = replace(new, figures=figures)
        if row is not None:
            result[name] = row
    return result


def compare_layers(measured: Rows, stored: Rows) -> Verdict:
    """Compare instructions with the stored ones."""
    verdict = Verdict()
    for name, row in measured.items():
        for target, figure in row.figures.items():
            old = stored.get(name)
            before = None if old is None else old.figures.get(target)
            if before is None:
                verdict.notes.append(f"{name} on {target}: not stored yet; {_RENEW}")
                continue
            line = f"{name} on {target}: instructions {change(before.instructions, figure.instructions)}"
            kernels = f"{line}, with {', '.join(figure.kernels)}; before with {', '.join(before.kernels)}"
            if figure.instructions > (1 + TOLERANCE) * before.instructions:
                verdict.worse.append(kernels)
                continue
            if figure.instructions < (1 - TOLERANCE) * before.instructions:
                verdict.better.append(line)
            if figure.kernels != before.kernels or fell(before.instructions, figure.instructions):
                verdict.stale.append(kernels)
    return verdict


def slower(rows: Rows, order: Mapping[str, str]) -> list[str]:
    """Return a line per layer that is over 1 % slower on a target than `order` allows."""
    lines = []
    for name, row in rows.items():
        for target, other in order.items():
            if target not in row.figures or other not in row.figures:
                continue
            figure, limit = row.figures[target], row.figures[other]
            if figure.instructions > (1 + TOLERANCE) * limit.instructions:
                counts = f"{figure.instructions:,} instructions, with {', '.join(figure.kernels)}"
                others = f"{limit.instructions:,} on {other}, with {', '.join(limit.kernels)}"
                lines.append(f"{name} on {target}: {counts}; {others}")
    return lines


def read_rows(path: Path) -> dict[str, LayerRow]:
    """Read docs/layers.json; {} if there is no such file. Raises PipelineError."""
    try:
        data = parsed_json(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise PipelineError(f"{path.name}: format {data['format']}, expected {FORMAT}", hint=_RENEW)
        return {
            name: LayerRow(
                name,
                int(entry["macs"]),
                int(entry["elements"]),
                {
                    target: Figure(int(figure["instructions"]), tuple(figure["kernels"]), dict(figure.get("peers", {})))
                    for target, figure in entry["targets"].items()
                },
            )
            for name, entry in data["layers"].items()
        }
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PipelineError(f"{path.name} cannot be read: {error}", hint=_RENEW) from None


def write_rows(path: Path, rows: Iterable[LayerRow]) -> None:
    """Write the rows, one line per layer and target for readable diffs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    layers = ",\n".join(f"  {json.dumps(row.name)}: {{\n{_entry(row)}\n  }}" for row in rows)
    write_atomically(path, f'{{\n "format": {FORMAT},\n "layers": {{\n{layers}\n }}\n}}\n')


def _entry(row: LayerRow) -> str:
    lines = []
    for target, figure in row.figures.items():
        record: dict[str, Any] = {"instructions": figure.instructions, "kernels": list(figure.kernels)}
        if figure.peers:
            record["peers"] = dict(figure.peers)
        lines.append(f"    {json.dumps(target)}: {json.dumps(record)}")
    joined = ",\n".join(lines)
    return f'   "macs": {row.macs}, "elements": {row.elements},\n   "targets": {{\n{joined}\n   }}'
