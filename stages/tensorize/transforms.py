"""Remove layout transforms from a graph, and insert them where layouts differ."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stages.ir.graph import Graph, Layer, Layout, Move, Tensor

OUTPUT = -1
"""Reader number of the model's outputs."""

Read = tuple[int, str]  # index of a layer, or OUTPUT; name of a tensor


@dataclass(frozen=True)
class Untransformed:
    """A graph without layout transforms: layers read tensors in the layouts of `reads`.

    `graph` has the tensors in the layouts in which they are written.
    """

    graph: Graph
    reads: Mapping[Read, Layout]


def usual(tensor: Tensor) -> Layout:
    """Return a tensor's layout; NHWC for an image without one."""
    return Layout("NHWC") if not tensor.layout and len(tensor.shape) == 4 else tensor.layout


def is_transform(layer: Layer) -> bool:
    """Return whether a layer only changes the layout of its input."""
    op: Any = layer.op
    return bool(isinstance(op, Move) and op.kind == "layout")


def without_transforms(graph: Graph) -> Untransformed | None:
    """Return the graph without transforms; None if a layer reads a tensor in two layouts."""
    source: dict[str, str] = {}
    reads: dict[Read, Layout] = {}
    layers: list[Layer] = []
    for layer in graph.layers:
        if is_transform(layer):
            source[layer.outputs[0]] = source.get(layer.inputs[0], layer.inputs[0])
            continue
        inputs = tuple(source.get(name, name) for name in layer.inputs)
        for name, root in zip(layer.inputs, inputs, strict=True):
            layout = usual(graph.tensors[name])
            if reads.setdefault((len(layers), root), layout) != layout:
                return None
        layers.append(layer.model_copy(update={"index": len(layers), "inputs": inputs}))
    for name in graph.outputs:
        reads[OUTPUT, source.get(name, name)] = usual(graph.tensors[name])
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in source}
    outputs = [source.get(name, name) for name in graph.outputs]
    return Untransformed(replace(graph, layers=layers, tensors=tensors, outputs=outputs), reads)


def transform(tensor: Tensor, layout: Layout, name: str) -> tuple[Layer, Tensor]:
    """Return the layer (without index) that copies a tensor to a layout, and the copy.

    The copy is a view if no byte moves.
    """
    alias = tensor.name if tensor.lies_as(layout) else None
    copy = tensor.model_copy(update={"name": name, "layout": layout, "alias_of": alias, "offset": 0})
    return Layer(index=0, name=name, op=Move(kind="layout"), inputs=(tensor.name,), outputs=(name,)), copy


def with_transforms(untransformed: Untransformed, homes: Mapping[str, Layout], reads: Mapping[Read, Layout]) -> Graph:
    """Return the graph with tensors written as `homes` and read as `reads`.

    Each transform is inserted before its first reader. Other tensors and reads keep their layouts.
    """
    graph, tensors, layers = untransformed.graph, dict(untransformed.graph.tensors), list[Layer]()
    for name, layout in homes.items():
        tensors[name] = tensors[name].model_copy(update={"layout": layout})
    copies: dict[tuple[str, Layout], str] = {}

    def read(reader: int, name: str) -> str:
        """Return the tensor in the reader's layout; add a transform if there is none yet."""
        layout = reads.get((reader, name), untransformed.reads[reader, name])
        if layout == usual(tensors[name]):
            return name
        if (name, layout) not in copies:
            copies[name, layout] = unused = _unused(f"{name}/{layout}", tensors)
            layer, tensors[unused] = transform(tensors[name], layout, unused)
            layers.append(layer.model_copy(update={"index": len(layers)}))
        return copies[name, layout]

    for layer in graph.layers:
        inputs = tuple(read(layer.index, name) for name in layer.inputs)
        layers.append(layer.model_copy(update={"index": len(layers), "inputs": inputs}))
        for out in layer.outputs:
            if tensors[out].alias_of is not None and not layer.state:  # the view of a reshape follows its input
                tensors[out] = tensors[out].model_copy(update={"alias_of": inputs[0]})
    outputs = [read(OUTPUT, name) for name in graph.outputs]
    return replace(graph, tensors=tensors, layers=layers, outputs=outputs)


def _unused(name: str, tensors: Mapping[str, Tensor]) -> str:
    candidate, number = name, 1
    while candidate in tensors:
        number += 1
        candidate = f"{name}#{number}"
    return candidate
