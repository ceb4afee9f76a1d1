"""What the page shows beside report.json: edges between layers, the first inference, what the core reaches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.graph import Graph
    from stages.report.html.samples import Shown


@dataclass(frozen=True)
class Extras:
    """What the page shows beside the report: edges between layers, the first inference, pictures as SVG.

    `reach` has, by position of a layer, the fewest instructions per multiply-accumulate that were measured on the core
    for its operator and type.
    """

    edges: Sequence[tuple[int, int]] = ()
    inputs: Sequence[Shown] = ()
    outputs: Sequence[Shown] = ()
    fed: str = ""
    timeline: str = ""
    ranges: str = ""
    reach: Mapping[int, float] = field(default_factory=dict)


def gathered(artifacts: Mapping[str, Path], timeline: str, ranges: str) -> Extras:
    """From the artifacts."""
    from stages.graph import Graph
    from stages.report.html.network import edges

    graph = Graph.load(Path(artifacts["tensorize"]), constants=False)
    inputs, outputs, fed = _first(artifacts) if {"emit", "simulate"} <= artifacts.keys() else ((), (), "")
    return Extras(edges(graph), inputs, outputs, fed, timeline, ranges, _reach(graph, Path(artifacts["tensorize"])))


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


def _reach(graph: Graph, tensorized: Path) -> dict[int, float]:
    from stages.tensorize.costs import reach_of

    least = json.loads((tensorized / "plan.json").read_text()).get("reach", {})
    keys = {
        position: reach_of(layer.kind, graph.tensors[layer.inputs[0]].dtype)
        for position, layer in enumerate(graph.layers)
        if layer.inputs
    }
    return {position: least[key] for position, key in keys.items() if key in least}
