"""The artifact of the stage: plan.json, tir.json, weights.npz and the files of the graph."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages.ir.arrays import Array
from stages.ir.graph import Graph
from stages.support.lazy import np, tvm
from stages.tensorize.plan import TensorizePlan

TIR = "tir.json"
WEIGHTS = "weights.npz"


@dataclass(frozen=True)
class Tensorized:
    """The artifact in memory: plan, graph, PrimFuncs by name, packed constants by key.

    The graph has the chosen equivalent layers and the tensors that are placed inside others.
    """

    plan: TensorizePlan
    graph: Graph
    functions: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, Array] = field(default_factory=dict)


def save(artifact: Tensorized, folder: Path) -> None:
    """Write the artifact to `folder`. Equal content gives equal bytes."""
    artifact.plan.save(folder)
    artifact.graph.save(folder)
    module = tvm.IRModule({tvm.ir.GlobalVar(name): func for name, func in artifact.functions.items()})
    (folder / TIR).write_text(_without_paths(tvm.ir.save_json(module)) + "\n")
    weights: dict[str, Any] = {key: artifact.weights[key] for key in sorted(artifact.weights)}
    np.savez(folder / WEIGHTS, **weights)


def load(folder: Path) -> Tensorized:
    """Return the artifact that `save` wrote."""
    module = tvm.ir.load_json((folder / TIR).read_text())
    with np.load(folder / WEIGHTS) as npz:
        weights = {key: npz[key] for key in npz.files}
    functions = {var.name_hint: func for var, func in module.functions.items()}
    return Tensorized(TensorizePlan.load(folder), Graph.load(folder), functions, weights)


def _without_paths(text: str) -> str:
    """Return TVM's JSON without the Python file names, which differ from machine to machine."""
    tree = json.loads(text)
    for node in tree["nodes"]:
        if node.get("type") == "ir.SourceName":
            node["data"] = ""
    return json.dumps(tree)
