"""What the page shows beside report.json: edges between layers, the first inference, what the core reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.report.html.samples import Shown


@dataclass(frozen=True)
class Extras:
    """What the page shows beside the report: edges between layers, the first inference, pictures as SVG.

    `reach` has the fewest instructions per multiply-accumulate that were measured on the core, by kind of layer.
    """

    edges: Sequence[tuple[int, int]] = ()
    inputs: Sequence[Shown] = ()
    outputs: Sequence[Shown] = ()
    fed: str = ""
    timeline: str = ""
    ranges: str = ""
    reach: Mapping[str, float] | None = None


def gathered(artifacts: Mapping[str, Path], costs: Path | None, timeline: str, ranges: str) -> Extras:
    """From the artifacts, and the core's cost table if there is one."""
    from stages.graph import Graph
    from stages.report.html.network import edges

    graph = Graph.load(Path(artifacts["tensorize"]), constants=False)
    inputs, outputs, fed = _first(artifacts) if {"emit", "simulate"} <= artifacts.keys() else ((), (), "")
    return Extras(edges(graph), inputs, outputs, fed, timeline, ranges, _reach(costs) if costs is not None else None)


def _first(artifacts: Mapping[str, Path]) -> tuple[Sequence[Shown], Sequence[Shown], str]:
    """Inputs, outputs and name of the first inference."""
    from stages.report.html.samples import shown_input, shown_output
    from stages.verify.records import Records

    records = Records.read(Path(artifacts["emit"]), Path(artifacts["simulate"]))
    if not records.outputs.count:
        return (), (), ""
    inputs = [
        shown_input(port.name, values)
        for port, values in zip(records.inputs.ports[records.kept :], records.given(0), strict=True)
    ]
    outputs = [
        shown_output(port.name, values)
        for port, values in zip(records.outputs.ports, records.outputs.row(0), strict=True)
    ]
    return inputs, outputs, records.names[0] if records.names else ""


def _reach(costs: Path) -> dict[str, float]:
    """The fewest instructions per multiply-accumulate in a cost table, by kind of layer."""
    from stages.tensorize.costs import read_file

    found: dict[str, float] = {}
    for signature, row in read_file(costs)["layers"].items():
        products, op = row.get("work", {}).get("products"), signature.partition(" ")[0]
        counts = [counts[0] for name, counts in row.items() if name != "work"]
        if products and counts:
            found[op] = min(found.get(op, float("inf")), min(counts) / products)
    return found
