"""Copies that the arena makes unnecessary: slices are read where they lie, joined tensors are written in their place.

A slice, or an input of a concatenation, that is one run of the larger tensor's bytes can be a part of its memory:

    split            x [  a  |  b  |  c  ]    a, b and c are parts of x; nothing is copied
    concatenation    y [  a  |  b  |  c  ]    the layers that compute a, b and c write into y

So it is with batch 1 along the first axis that has more than one element: boxes of several scales, flat features,
channels of planes. Channels of an NHWC image are no single run; they are copied.

The larger tensor is alive as long as any of its parts, so that memory is shared only where the least possible arena
stays as it is. Inputs of a concatenation that cannot be parts (the model's inputs, constants, a tensor that is joined
twice, one that would not be aligned) are copied as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stages.arena import liveness
from stages.arena.planner import lower_bound
from stages.graph import Graph, Layer, place
from stages.graph.tensor import ITEM_BYTES
from stages.kernels.generic.movement import SLICES, Copy, copy_of, parts
from stages.kernels.kernel import Kernel

ALIGNMENT = 16
"""Tensors begin at multiples of so many bytes; kernels load whole registers from there."""


def share(graph: Graph, kernels: Iterable[Kernel]) -> Graph:
    """The graph with `Tensor.alias_of` and `offset` set for all parts, layer by layer."""
    chosen = list(kernels)
    overlaid = frozenset(
        layer.index
        for layer in graph.layers
        if any(layer.op.op in kernel.ops and kernel.overlays(graph.view(layer)) for kernel in chosen)
    )

    def least_arena(one: Graph) -> int:
        return lower_bound(liveness(one, may_overlay=overlaid).buffers, ALIGNMENT)

    for layer in graph.layers:
        changed = _with_parts(graph, layer, list(_parts_of(graph, layer)))
        if changed is not None and least_arena(changed) <= least_arena(graph):
            graph = changed
    return graph


def renames_only(graph: Graph, layer: Layer) -> bool:
    """Whether nothing has to be computed: the output is a view of the input, or all its parts are in their place."""
    if layer.op.op == "concatenation":
        return not parts(graph.view(layer))
    return layer.op.op == "move" and all(graph.tensors[name].alias_of in layer.inputs for name in layer.outputs)


def _parts_of(graph: Graph, layer: Layer) -> Iterator[tuple[str, str, int]]:
    """(part, whole, offset in bytes) for each tensor of the layer that can be a part of another."""
    view, out = graph.view(layer), layer.outputs[0]
    item_bytes = ITEM_BYTES[graph.tensors[out].dtype]
    if layer.op.op == "move" and layer.op.kind in SLICES and graph.tensors[out].alias_of is None:
        copy, whole = copy_of(view), layer.inputs[0]
        root, _ = place(graph.tensors, whole)
        if _is_one_run(copy) and not graph.tensors[root].constant:
            yield out, whole, copy.source_offset * item_bytes
    if layer.op.op == "concatenation":
        for copy in parts(view):
            name, _ = place(graph.tensors, layer.inputs[copy.source])
            whole_tensor = graph.tensors[layer.inputs[copy.source]].bytes == graph.tensors[name].bytes
            if _is_one_run(copy) and whole_tensor and not graph.tensors[name].constant and name not in graph.inputs:
                yield name, out, copy.target_offset * item_bytes


def _with_parts(graph: Graph, layer: Layer, found: list[tuple[str, str, int]]) -> Graph | None:
    """The graph with those parts that are aligned; None when there is none. A tensor is part of one place only."""
    tensors = dict(graph.tensors)
    for part, whole, offset in found:
        root, start = place(tensors, whole)
        if part != root and tensors[part].alias_of is None and (start + offset) % ALIGNMENT == 0:
            tensors[part] = tensors[part].model_copy(update={"alias_of": whole, "offset": offset})
    if tensors == graph.tensors:
        return None
    return Graph(tensors, graph.layers, graph.inputs, graph.outputs, graph.constants)


def _is_one_run(copy: Copy) -> bool:
    return len(copy.axes) == 1 and copy.axes[0].strides == (1, 1)
