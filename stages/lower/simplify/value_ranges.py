"""The value range of every channel of the graph, from the model's inputs to its outputs."""

from stages.ir.graph import Graph
from stages.ir.layers.channels import ValueRange
from stages.ir.reference.integer import to_logical

BYTES = ("int8", "uint8")


def value_ranges(graph: Graph) -> dict[str, ValueRange]:
    """Return the value range of each 8-bit tensor's channels; the type's range if unknown."""
    ranges: dict[str, ValueRange] = {}
    for name, tensor in graph.tensors.items():
        if tensor.dtype in BYTES and (tensor.constant or name in graph.inputs):
            values = to_logical(graph.constants[name], tensor) if tensor.constant else None
            ranges[name] = ValueRange.of_type(tensor) if values is None else ValueRange.of_values(values)
    for layer in graph.layers:
        inputs = [ranges[name] for name in layer.inputs if name in ranges]
        value_range = layer.op.value_range(graph.view(layer), inputs) if len(inputs) == len(layer.inputs) else None
        for name in layer.outputs:
            if graph.tensors[name].dtype in BYTES:
                ranges[name] = value_range or ValueRange.of_type(graph.tensors[name])
    return ranges
