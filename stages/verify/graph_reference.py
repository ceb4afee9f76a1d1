"""A network that an engine computes with arithmetic of its own: its reference, and how far that is from LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages.base import StageError
from stages.ir.graph import Graph
from stages.ir.graph.packed import as_in_file
from stages.ir.reference.integer import run_graph
from stages.support.messages import escape
from stages.verify.records import Array


class GraphReference:
    """The integer graph that emit leaves where its arithmetic is not the model's, as an reference beside LiteRT's."""

    described = "the integer graph with the engine's own arithmetic"

    def __init__(self, folder: Path) -> None:
        self.graph = Graph.load(folder)
        self._by_index = {
            tensor.tflite_index: tensor for tensor in self.graph.tensors.values() if tensor.tflite_index is not None
        }
        self._values: dict[str, Array] = {}
        self._kept: dict[str, Array] | None = None
        floats = [layer.name for layer in self.graph.layers if layer.op.op == "float"]
        if floats:
            raise StageError(
                f"layer {escape.quoted(floats[0])} is computed in float32, so the network with the engine's arithmetic "
                "has no integer reference",
                hint="Let the core requantize (stages.tensorize.requantize: core), or leave verify out.",
            )

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs in the model's order."""
        self._values = run_graph(self.graph, inputs, states=self._kept)
        self._kept = {name: self._values[name] for name, tensor in self.graph.tensors.items() if tensor.state}
        return [self._in_file(name) for name in self.graph.outputs]

    def reset(self) -> None:
        """Forgets what earlier runs have left."""
        self._kept = None

    def has(self, index: int) -> bool:
        """Whether the graph has the tensor of that index in the imported file."""
        return index in self._by_index

    def tensor(self, index: int) -> Array:
        """A tensor of the last run by its index in the imported file."""
        return self._in_file(self._by_index[index].name)

    def _in_file(self, name: str) -> Array:
        return as_in_file(self._values[name], self.graph.tensors[name].added)


class Distance:
    """Counts of values that differ from LiteRT's, over all inferences."""

    def __init__(self) -> None:
        self.values = self.differing = 0
        self.largest = 0.0

    def add(self, ours: Array, theirs: Array) -> None:
        apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64).reshape(ours.shape))
        self.values += apart.size
        self.differing += int((apart > 0).sum())
        self.largest = max(self.largest, float(apart.max(initial=0)))

    def as_dict(self) -> dict[str, Any]:
        """`largest` difference and `share` of values that differ."""
        return {
            "values": self.values,
            "differing": self.differing,
            "share": self.differing / self.values if self.values else 0.0,
            "largest": self.largest,
        }


def check_bounds(
    distance: dict[str, Any], largest: float | None, share: float | None, *, near_ties: bool = False
) -> None:
    """Raise StageError where outputs are further from the reference's than the recipe allows.

    near_ties  the distance is from ONNX Runtime, by sums that round either way; else from LiteRT, by an engine's own
               arithmetic
    """
    found = distance["outputs"]
    reference = "ONNX Runtime's" if near_ties else "LiteRT's"
    told = f"{found['differing']} of {found['values']} output values differ from {reference}"
    told += f", by {found['largest']:g} at most"
    hint = "stages.tensorize.requantize: core is exact, and so is an engine that rounds as TFLite does."
    if near_ties:
        hint = "Sums of real numbers that are near ties may round otherwise in ONNX Runtime (docs/how-to/onnx.md)."
    for name, value, bound in (
        ("max_difference", found["largest"], largest),
        ("max_share", found["share"], share),
    ):
        if bound is not None and value > bound:
            message = f"{told}; the recipe's verify.{name} is {bound:g}"
            raise StageError(message, hint=hint, at=("stages", "verify", name))
