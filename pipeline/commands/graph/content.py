"""Boxes of a recipe's stages, and of the layers of its network."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.artifacts.store import Artifact
from pipeline.commands.graph.drawing import Box, Column, without_detours
from pipeline.keys.explain import Explanation
from pipeline.keys.planner import Plan

_FILES = ("graph.json", "plan.json", "report.json")


@dataclass(frozen=True)
class Network:
    """The files of a run: graph.json, plan.json and report.json as far as they exist.

    The graph is tensorize's or quantize's.
    """

    graph: Mapping[str, Any]
    plan: Mapping[str, Any] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)


def network_of(artifacts: Sequence[Artifact]) -> Network | None:
    """Return the network in a run's artifacts (in stage order); None if none has a graph."""
    files: dict[str, Path] = {}
    for artifact in artifacts:
        files |= {name: artifact.files / name for name in _FILES if (artifact.files / name).is_file()}
    if "graph.json" not in files:
        return None
    read = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in files.items()}
    return Network(read["graph.json"], read.get("plan.json", {}), read.get("report.json", {}))


def stage_column(plan: Plan, stages: Sequence[Explanation], artifacts: Mapping[str, Artifact]) -> Column:
    """Return the column of stages: state, seconds of the last run, and why a stage will run."""
    numbers = {action.kind: number for number, action in enumerate(plan)}
    boxes = []
    for stage in stages:
        artifact = artifacts.get(stage.kind)
        seconds = "" if artifact is None else f"{artifact.seconds:.1f} s"
        state = "cached" if stage.cached else "will run"
        if stage.cached and stage.unless:
            state = f"cached, unless {', '.join(stage.unless)} changes it"
        kind = "done" if stage.cached and not stage.unless else "work"
        boxes.append(Box(stage.kind, seconds, state, "; ".join(stage.reasons), kind))
    arrows = [(numbers[name], numbers[action.kind]) for action in plan for name in action.link.inputs.values()]
    return Column("stages, and seconds of their last run", boxes, without_detours(arrows))


def layer_column(network: Network) -> Column:
    """Return the column of layers: kernel, shapes, and instructions if they were counted."""
    graph = network.graph
    tensors = {tensor["name"]: tensor for tensor in graph["tensors"]}
    planned = {entry["index"]: entry for entry in network.plan.get("layers", ())}
    counted = {entry["index"]: entry.get("instructions") for entry in network.report.get("layers", ())}
    boxes = [Box(name, "", f"input  {_shape(tensors[name])}", kind="end") for name in graph["inputs"]]
    makers = {name: number for number, name in enumerate(graph["inputs"])}
    arrows = []
    for layer in graph["layers"]:
        number = len(boxes)
        arrows += [(makers[name], number) for name in _sources(layer["inputs"], tensors, makers)]
        makers |= dict.fromkeys(layer["outputs"], number)
        entry, figure = planned.get(layer["index"], {}), counted.get(layer["index"])
        shapes = f"{_shapes(layer['inputs'], tensors)} → {_shapes(layer['outputs'], tensors)}"
        text = " · ".join(filter(None, (layer["op"]["op"], entry.get("kernel", ""), shapes)))
        tooltip = "; ".join(filter(None, (layer["name"], text, entry.get("why", ""))))
        title = f"{layer['index']} {layer['name']}"
        boxes.append(Box(title, "" if figure is None else f"{figure:,}", text, tooltip))
    for name in graph["outputs"]:
        arrows += [(makers[source], len(boxes)) for source in _sources([name], tensors, makers)]
        boxes.append(Box(name, "", f"output  {_shape(tensors[name])}", kind="end"))
    unit = "instructions of one inference" if any(figure is not None for figure in counted.values()) else ""
    return Column(", ".join(filter(None, ("layers", unit))), boxes, arrows)


def _sources(names: Sequence[str], tensors: Mapping[str, Any], makers: Mapping[str, int]) -> list[str]:
    """Return the tensors that a layer or an input computes; views stand for the tensor below."""
    sources = []
    for name in names:
        seen: set[str] = set()
        while name not in makers and name not in seen and tensors.get(name, {}).get("alias_of"):
            seen.add(name)
            name = tensors[name]["alias_of"]
        # Constants and states have no source.
        sources += [name] * (name in makers)
    return sources


def _shapes(names: Sequence[str], tensors: Mapping[str, Any]) -> str:
    return ", ".join(_shape(tensors[name]) for name in names if not tensors[name].get("constant"))


def _shape(tensor: Mapping[str, Any]) -> str:
    return "x".join(map(str, tensor["shape"])) or "scalar"
