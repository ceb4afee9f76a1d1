"""What every channel of the graph can be, from the model's inputs to its outputs."""

from __future__ import annotations

from stages.ir.graph import Graph
from stages.ir.operators.channels import ValueRange
from stages.ir.reference.integer import to_logical

BYTES = ("int8", "uint8")


def value_ranges(graph: Graph) -> dict[str, ValueRange]:
    """For each 8-bit tensor what its channels can be; all values of its type where nobody knows."""
    found: dict[str, ValueRange] = {}
    for name, tensor in graph.tensors.items():
        if tensor.dtype in BYTES and (tensor.constant or name in graph.inputs):
            values = to_logical(graph.constants[name], tensor) if tensor.constant else None
            found[name] = ValueRange.of_type(tensor) if values is None else ValueRange.of_values(values)
    for layer in graph.layers:
        inputs = [found[name] for name in layer.inputs if name in found]
        reach = layer.op.reach(graph.view(layer), inputs) if len(inputs) == len(layer.inputs) else None
        for name in layer.outputs:
            if graph.tensors[name].dtype in BYTES:
                found[name] = reach or ValueRange.of_type(graph.tensors[name])
    return found
