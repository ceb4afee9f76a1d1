"""What the stage leaves: plan.json, tir.json, weights.npz and the graph's files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.ir.graph import Graph
from stages.tensorize.plan import TensorizePlan

if TYPE_CHECKING:
    import numpy as np

TIR = "tir.json"
WEIGHTS = "weights.npz"


@dataclass(frozen=True)
class Tensorized:
    """Everything the stage writes, in memory: the plan, PrimFuncs by name, packed constants by key.

    The graph is the stage's input with the forms of layers that were chosen, and tensors that are parts of others.
    """

    plan: TensorizePlan
    graph: Graph
    functions: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)


def save(made: Tensorized, folder: Path) -> None:
    """Writes plan.json, tir.json, weights.npz and the graph's files; the same content gives the same bytes."""
    import numpy as np
    import tvm

    made.plan.save(folder)
    made.graph.save(folder)
    module = tvm.IRModule({tvm.ir.GlobalVar(name): func for name, func in made.functions.items()})
    (folder / TIR).write_text(_without_paths(tvm.ir.save_json(module)) + "\n")
    weights: dict[str, Any] = {key: made.weights[key] for key in sorted(made.weights)}
    np.savez(folder / WEIGHTS, **weights)


def load(folder: Path) -> Tensorized:
    """Reads what `save` wrote."""
    import numpy as np
    import tvm

    module = tvm.ir.load_json((folder / TIR).read_text())
    with np.load(folder / WEIGHTS) as npz:
        weights = {key: npz[key] for key in npz.files}
    functions = {var.name_hint: func for var, func in module.functions.items()}
    return Tensorized(TensorizePlan.load(folder), Graph.load(folder), functions, weights)


def _without_paths(text: str) -> str:
    """TVM's JSON without the Python file names that its script parser notes: they differ from machine to machine."""
    tree = json.loads(text)
    for node in tree["nodes"]:
        if node.get("type") == "ir.SourceName":
            node["data"] = ""
    return json.dumps(tree)
