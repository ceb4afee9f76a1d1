"""Checks of every integer graph."""

from stages.ir.graph import Graph
from stages.ir.operators.floats import Float

_COMPUTING = {"int8", "uint8", "float32"}


def widened(graph: Graph) -> list[str]:
    """Layers with an activation or weights wider than in the imported model.

    int8 stays int8 and uint8 stays uint8: 16 bits would be as exact, but need twice the memory and half the lanes.
    A model with int16 tensors may have int16 intermediate tensors.
    """
    names = []
    allowed = set(_COMPUTING)
    if any(tensor.dtype == "int16" and tensor.tflite_index is not None for tensor in graph.tensors.values()):
        allowed.add("int16")
    for layer in graph.layers:
        if isinstance(layer.op, Float) or layer.op.any_type:
            continue
        tensors = [graph.tensors[name] for name in (*layer.inputs, *layer.outputs)]
        types: set[str] = {tensor.dtype for tensor in tensors if tensor.tflite_index is None}
        if "weights" in layer.constants:
            types.add(str(graph.constants[layer.constants["weights"]].dtype))
        if not types <= allowed:
            names.append(layer.name)
    return names


def check_widths(graph: Graph) -> None:
    """Raise AssertionError if a layer is wider than 8 bits, which is a bug of this stage."""
    wide = widened(graph)
    assert not wide, f"wider than 8 bits: {', '.join(wide)}"
