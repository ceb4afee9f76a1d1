"""Edit graphs consistently: renumber layers, redirect readers and aliases."""

from collections.abc import Container, Mapping
from dataclasses import replace

from stages.ir.arrays import Array
from stages.ir.graph import Graph, Layer, LayerOp, storage_of


def readers(graph: Graph, name: str) -> list[Layer]:
    """Return the layers that read a tensor."""
    return [layer for layer in graph.layers if name in layer.inputs]


def writer(graph: Graph, name: str) -> Layer | None:
    """Return the layer that writes a tensor; None for inputs and constants."""
    return next((layer for layer in graph.layers if name in layer.outputs), None)


def writes_state(graph: Graph, layer: Layer) -> bool:
    """Return whether the layer's output is state that other layers read, also in the next run."""
    return any(storage_of(graph.tensors, name)[0] in layer.state for name in layer.outputs)


def is_private(graph: Graph, name: str) -> bool:
    """Return whether exactly one layer reads the tensor, once, and its memory is not shared."""
    times = sum(layer.inputs.count(name) for layer in graph.layers)
    shared = any(name == tensor.alias_of for tensor in graph.tensors.values()) or graph.tensors[name].alias_of
    return times == 1 and name not in (*graph.inputs, *graph.outputs) and not shared


def unused(names: Container[str], name: str) -> str:
    """Return `name`, or a variation that is not one of `names`."""
    while name in names:
        name += "'"
    return name


def replaced(graph: Graph, layer: Layer, op: LayerOp, inputs: tuple[str, ...], constants: Mapping[str, Array]) -> Graph:
    """Return the graph with another operator for a layer's output.

    `constants` are all its constants by role.
    """
    names = {role: unused(graph.constants, f"{layer.name}/{role}") for role in constants}
    changed = layer.model_copy(update={"op": op, "inputs": inputs, "constants": names})
    added = {names[role]: values for role, values in constants.items()}
    tensors, out = dict(graph.tensors), graph.tensors[layer.outputs[0]]
    if out.alias_of is not None:
        tensors[out.name] = out.model_copy(update={"alias_of": inputs[0]})
    layers = [changed if other is layer else other for other in graph.layers]
    return without_unread(replace(graph, tensors=tensors, layers=layers, constants={**graph.constants, **added}))


def merged(graph: Graph, layer: Layer, name: str) -> Graph | None:
    """Return the graph without a layer whose output equals the tensor `name`.

    None if both tensors must exist: for the caller, or because memory is shared.
    """
    (removed,), kept = layer.outputs, name
    if removed in graph.outputs:
        maker = writer(graph, name)
        if maker is None or name in graph.outputs or len(maker.outputs) != 1:
            return None
        removed, kept = name, removed
    if any(
        graph.tensors[tensor].alias_of and storage_of(graph.tensors, tensor)[0] != name for tensor in (removed, kept)
    ):
        return None

    def new(old: str) -> str:
        return kept if old == removed else old

    layers = [
        other.model_copy(update={"inputs": tuple(map(new, other.inputs)), "outputs": tuple(map(new, other.outputs))})
        for other in graph.layers
        if other is not layer
    ]
    tensors = {
        key: tensor.model_copy(update={"alias_of": new(tensor.alias_of)}) if tensor.alias_of else tensor
        for key, tensor in graph.tensors.items()
        if key != removed
    }
    if tensors[kept].alias_of == kept:  # it was an alias of the tensor that it replaces
        tensors[kept] = tensors[kept].model_copy(update={"alias_of": graph.tensors[removed].alias_of})
    return numbered(replace(graph, layers=layers, tensors=tensors))


def without_unread(graph: Graph) -> Graph:
    """Return the graph without unread layers and their constants.

    Layers stay if they write state for the next run or for a layer that stays.
    """
    read = set(graph.outputs)
    layers: list[Layer] = []
    for layer in reversed(graph.layers):
        if read & {*layer.outputs, *layer.state} or writes_state(graph, layer):
            read |= {*layer.inputs, *layer.state}
            layers.insert(0, layer)
    names = read | {name for layer in layers for name in (*layer.inputs, *layer.outputs)} | {*graph.inputs}
    roles = {name for layer in layers for name in layer.constants.values()}
    return numbered(
        replace(
            graph,
            layers=layers,
            tensors={name: tensor for name, tensor in graph.tensors.items() if name in names},
            constants={name: values for name, values in graph.constants.items() if name in names | roles},
        )
    )


def numbered(graph: Graph) -> Graph:
    """Return the graph with its layers renumbered from 0."""
    layers = [layer.model_copy(update={"index": index}) for index, layer in enumerate(graph.layers)]
    return replace(graph, layers=layers)
