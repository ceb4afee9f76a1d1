"""The integer graph as reference of an engine's own arithmetic; distance from LiteRT."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages.base import StageError
from stages.ir.arrays import Array
from stages.ir.graph import Graph
from stages.ir.operators.floats import Float
from stages.ir.packed import as_in_file
from stages.ir.reference.integer import run_graph
from stages.support.messages import escape


class GraphReference:
    """Reference that runs emit's integer graph. It has the interface of the other references."""

    described = "the integer graph with the engine's own arithmetic"

    def __init__(self, folder: Path) -> None:
        self.graph = Graph.load(folder)
        self._by_index = {
            tensor.tflite_index: tensor for tensor in self.graph.tensors.values() if tensor.tflite_index is not None
        }
        self._values: dict[str, Array] = {}
        self._states: dict[str, Array] | None = None
        floats = [layer.name for layer in self.graph.layers if isinstance(layer.op, Float)]
        if floats:
            raise StageError(
                f"layer {escape.quoted(floats[0])} is float32: the accelerator's arithmetic has no integer reference",
                hint="Set stages.tensorize.requantize: core, or remove the stage verify.",
            )

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the graph and return the outputs in the model's order."""
        self._values = run_graph(self.graph, inputs, states=self._states)
        self._states = {name: self._values[name] for name, tensor in self.graph.tensors.items() if tensor.state}
        return [self._in_file(name) for name in self.graph.outputs]

    def reset(self) -> None:
        """Reset the network's state."""
        self._states = None

    def has(self, index: int) -> bool:
        """Return whether the graph has the tensor with this index in the imported file."""
        return index in self._by_index

    def tensor(self, index: int) -> Array:
        """Return a tensor of the last run by its index in the imported file."""
        return self._in_file(self._by_index[index].name)

    def _in_file(self, name: str) -> Array:
        return as_in_file(self._values[name], self.graph.tensors[name].added)


class Distance:
    """Count of values that differ from LiteRT's, over all inferences."""

    def __init__(self) -> None:
        self.values = self.differing = 0
        self.largest = 0.0

    def add(self, ours: Array, theirs: Array) -> None:
        """Add the firmware's and the reference's values of a tensor."""
        distance = np.abs(ours.astype(np.float64) - theirs.astype(np.float64).reshape(ours.shape))
        self.values += distance.size
        self.differing += int((distance > 0).sum())
        self.largest = max(self.largest, float(distance.max(initial=0)))

    def as_dict(self) -> dict[str, Any]:
        """Return the counts, the `largest` difference and the `share` of values that differ."""
        return {
            "values": self.values,
            "differing": self.differing,
            "share": self.differing / self.values if self.values else 0.0,
            "largest": self.largest,
        }


def check_bounds(
    distance: dict[str, Any], largest: float | None, share: float | None, *, near_ties: bool = False
) -> None:
    """Raise StageError if outputs differ from the reference's by more than the recipe allows.

    near_ties  the distance is from ONNX Runtime, caused by near ties; else from LiteRT, caused by an accelerator's
               arithmetic
    """
    outputs = distance["outputs"]
    reference = "ONNX Runtime's" if near_ties else "LiteRT's"
    result = f"{outputs['differing']} of {outputs['values']} output values differ from {reference}"
    result += f", by at most {outputs['largest']:g}"
    hint = "For exact results set stages.tensorize.requantize: core."
    if near_ties:
        hint = "Near ties may round differently in ONNX Runtime (docs/how-to/onnx.md)."
    for name, value, bound in (("max_difference", outputs["largest"], largest), ("max_share", outputs["share"], share)):
        if bound is not None and value > bound:
            message = f"{result}; the recipe's verify.{name} is {bound:g}"
            raise StageError(message, hint=hint, at=("stages", "verify", name))
