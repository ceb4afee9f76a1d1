"""The figures of `doit bench suite=layers`, and docs/layers.json, which keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeline.commands.bench.check import TOLERANCE, Verdict, change, fell
from pipeline.errors import PipelineError
from stages.system.asides import write_whole
from stages.system.json_text import parsed_json

FORMAT = 1
_RENEW = "write it anew with `doit bench suite=layers --update`"


@dataclass(frozen=True)
class Figure:
    """One layer on one target: instructions of the first inference, and the kernels that compute it.

    peers  instructions that the functions of others take, by their names
    """

    instructions: int
    kernels: tuple[str, ...]
    peers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LayerRow:
    """A layer, called `CLASS/NAME` as its recipe, and what it takes on each target.

    elements  of its largest input or output
    """

    name: str
    macs: int
    elements: int
    figures: Mapping[str, Figure]

    @property
    def family(self) -> str:
        """The class of layers that it is of."""
        return self.name.partition("/")[0]

    @property
    def work(self) -> int:
        """Multiply-accumulates, elements where there are none."""
        return self.macs or self.elements

    def per_work(self, target: str) -> float | None:
        """Instructions per multiply-accumulate (or element); None where the target was not measured."""
        figure = self.figures.get(target)
        return None if figure is None else figure.instructions / self.work


Rows = Mapping[str, LayerRow]


def merged(stored: Rows, measured: Rows, names: Iterable[str], asked: str = "") -> dict[str, LayerRow]:
    """The measured figures over the stored ones, for the layers that there are.

    A peer's figure stays where the layer's work is as it was and the peer is not the one that was `asked`.
    """
    found = {}
    for name in names:
        old, new = stored.get(name), measured.get(name)
        if new is None or old is None or (old.macs, old.elements) != (new.macs, new.elements):
            row = new or old
        else:
            figures = dict(old.figures)
            for target, figure in new.figures.items():
                stayed = old.figures[target].peers if target in old.figures else {}
                before = {peer: count for peer, count in stayed.items() if peer != asked}
                figures[target] = replace(figure, peers={**before, **figure.peers})
            row = replace(new, figures=figures)
        if row is not None:
            found[name] = row
    return found


def check_layers(measured: Rows, stored: Rows) -> Verdict:
    """Compares instructions with the stored ones."""
    verdict = Verdict()
    for name, row in measured.items():
        for target, figure in row.figures.items():
            old = stored.get(name)
            before = None if old is None else old.figures.get(target)
            if before is None:
                verdict.notes.append(f"{name} on {target}: not stored yet; {_RENEW}")
                continue
            line = f"{name} on {target}: instructions {change(before.instructions, figure.instructions)}"
            others = f"{line}, by {', '.join(figure.kernels)}; were by {', '.join(before.kernels)}"
            if figure.instructions > (1 + TOLERANCE) * before.instructions:
                verdict.worse.append(others)
                continue
            if figure.instructions < (1 - TOLERANCE) * before.instructions:
                verdict.better.append(line)
            if figure.kernels != before.kernels or fell(before.instructions, figure.instructions):
                verdict.stale.append(others)
    return verdict


def slower(rows: Rows, order: Mapping[str, str]) -> list[str]:
    """A line for each layer on which a target takes over a percent more than the one that it may be no slower than."""
    lines = []
    for name, row in rows.items():
        for target, other in order.items():
            if target not in row.figures or other not in row.figures:
                continue
            here, there = row.figures[target], row.figures[other]
            if here.instructions > (1 + TOLERANCE) * there.instructions:
                counts = f"{here.instructions:,} instructions, by {', '.join(here.kernels)}"
                others = f"{there.instructions:,} on {other}, by {', '.join(there.kernels)}"
                lines.append(f"{name} on {target}: {counts}; {others}")
    return lines


def read_rows(path: Path) -> dict[str, LayerRow]:
    """The rows of docs/layers.json; none when there is no such file. Raises PipelineError."""
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
                    target: Figure(int(one["instructions"]), tuple(one["kernels"]), dict(one.get("peers", {})))
                    for target, one in entry["targets"].items()
                },
            )
            for name, entry in data["layers"].items()
        }
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PipelineError(f"{path.name} cannot be read: {error}", hint=_RENEW) from None


def write_rows(path: Path, rows: Iterable[LayerRow]) -> None:
    """Writes the rows with one line for each layer and target, so that a diff shows what changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    layers = ",\n".join(f"  {json.dumps(row.name)}: {{\n{_entry(row)}\n  }}" for row in rows)
    write_whole(path, f'{{\n "format": {FORMAT},\n "layers": {{\n{layers}\n }}\n}}\n')


def _entry(row: LayerRow) -> str:
    lines = []
    for target, figure in row.figures.items():
        one: dict[str, Any] = {"instructions": figure.instructions, "kernels": list(figure.kernels)}
        if figure.peers:
            one["peers"] = dict(figure.peers)
        lines.append(f"    {json.dumps(target)}: {json.dumps(one)}")
    joined = ",\n".join(lines)
    return f'   "macs": {row.macs}, "elements": {row.elements},\n   "targets": {{\n{joined}\n   }}'
