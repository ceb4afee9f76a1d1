"""Data of the page that report.json lacks: edges, first inference, pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stages.ir.graph import Graph
from stages.report.html.samples import Shown, shown_input, shown_output
from stages.verify.records import Records


@dataclass(frozen=True)
class Extras:
    """Edges between layers, inputs and outputs of the first inference, and pictures as SVG."""

    edges: Sequence[tuple[int, int]] = ()
    inputs: Sequence[Shown] = ()
    outputs: Sequence[Shown] = ()
    fed: str = ""
    timeline: str = ""
    ranges: str = ""
    audio: str = ""


def gathered(artifacts: Mapping[str, Path], timeline: str, ranges: str, classes: Sequence[str] = ()) -> Extras:
    """Collect the data from the artifacts.

    `classes` are names for the elements of the first output.
    """
    from stages.report.html.network import edges

    graph = Graph.load(Path(artifacts["tensorize"]), constants=False)
    inputs, outputs, fed = _first(artifacts, classes) if {"emit", "simulate"} <= artifacts.keys() else ((), (), "")
    return Extras(edges(graph), inputs, outputs, fed, timeline, ranges)


def _first(artifacts: Mapping[str, Path], classes: Sequence[str]) -> tuple[Sequence[Shown], Sequence[Shown], str]:
    """Return inputs, outputs and name of the first inference."""
    records = Records.read(Path(artifacts["emit"]), Path(artifacts["simulate"]))
    if not records.outputs.count:
        return (), (), ""
    inputs = [
        shown_input(port.name, values)
        for port, values in zip(records.inputs.ports[records.stateful :], records.inputs_of(0), strict=True)
    ]
    outputs = [
        shown_output(port.name, values, () if number else classes)
        for number, (port, values) in enumerate(zip(records.outputs.ports, records.outputs.row(0), strict=True))
    ]
    fed = records.names[0] if records.names else ""
    label = records.labels[0] if records.labels else None
    if label is not None:
        fed += f", labelled {classes[label] if classes else label}"
    return inputs, outputs, fed
