"""Copies that the arena makes unnecessary: slices are read where they lie, joined tensors are written in their place.

A slice, or an input of a concatenation, that is one run of the larger tensor's bytes can be a part of its memory:

    split            x [  a  |  b  |  c  ]    a, b and c are parts of x; nothing is copied
    concatenation    y [  a  |  b  |  c  ]    the layers that compute a, b and c write into y

So it is with batch 1 along the first axis that has more than one element: boxes of several scales, flat features,
channels of planes. Channels of an NHWC image are no single run; they are copied.

The larger tensor is alive as long as any of its parts, so that memory is shared only where the planned arena, with the
scratch of the kernels, stays as small as it is. Inputs of a concatenation that cannot be parts (the model's inputs,
constants, a tensor that is joined twice, one that would not be aligned) are copied as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from stages.backends.kernels.copies import SLICES, Copy, copy_of, parts
from stages.ir.graph import Graph, Layer, place
from stages.ir.graph.tensor import ITEM_BYTES
from stages.lower.arena import liveness, plan

ALIGNMENT, OUTPUT_ALIGNMENT = 16, 64
"""Parts begin at multiples of so many bytes: kernels load whole registers from there. `emit.alignment`, which a recipe
may set to 64 bytes for a DMA engine's sake, holds for the model's outputs too."""

SubTensor = tuple[str, str, int]  # name, whole, offset in bytes
Scratch = Mapping[int, Mapping[str, int]]


def share(graph: Graph, scratch: Callable[[], Scratch], overlaid: frozenset[int]) -> Graph:
    """The graph with `Tensor.alias_of` and `offset` set for all parts: those of a layer together, or else one by one.

    scratch   what the layers' kernels need, asked for only where there are parts
    overlaid  indices of layers whose output may take the memory of an input
    """
    needed: Scratch | None = None

    def arena(one: Graph) -> int:
        assert needed is not None
        return plan(liveness(one, needed, overlaid).buffers, ALIGNMENT).total

    for layer in graph.layers:
        found = list(_parts_of(graph, layer))
        for parts_of_one in (found, *([part] for part in found if len(found) > 1)):
            changed = _with_parts(graph, parts_of_one)
            if changed is None:
                continue
            needed = scratch() if needed is None else needed
            if arena(changed) <= arena(graph):
                graph = changed
    return graph


def renames_only(graph: Graph, layer: Layer) -> bool:
    """Whether nothing has to be computed: the output is a view of the input, or all its parts are in their place."""
    if layer.op.op == "concatenation":
        return not parts(graph.view(layer))
    return layer.op.op == "move" and all(graph.tensors[name].alias_of in layer.inputs for name in layer.outputs)


def _parts_of(graph: Graph, layer: Layer) -> Iterator[SubTensor]:
    """Each tensor of the layer that is one run of bytes of a larger one."""
    view, out = graph.view(layer), layer.outputs[0]
    if any(tensor.layout.bits for tensor in (*view.inputs, *view.outputs)):
        return  # a part may start in the middle of a byte
    item_bytes = ITEM_BYTES[graph.tensors[out].dtype]
    if layer.op.op == "move" and layer.kind in SLICES:
        copy, whole = copy_of(view), layer.inputs[0]
        root, _ = place(graph.tensors, whole)
        if _is_one_run(copy) and not graph.tensors[root].constant:
            yield out, whole, copy.source_offset * item_bytes
    if layer.op.op == "concatenation":
        for copy in parts(view):
            x = graph.tensors[layer.inputs[copy.source]]
            root, _ = place(graph.tensors, x.name)
            is_root = graph.tensors[root].bytes == x.bytes
            if _is_one_run(copy) and is_root and not graph.tensors[root].constant and root not in graph.inputs:
                yield root, out, copy.target_offset * item_bytes


def _with_parts(graph: Graph, found: Iterable[SubTensor]) -> Graph | None:
    """The graph with those parts that are aligned; None when there is none. A tensor is part of one place only."""
    tensors = dict(graph.tensors)
    for part, whole, offset in found:
        root, start = place(tensors, whole)
        is_output = any(place(tensors, name)[0] == part for name in graph.outputs)
        alignment = OUTPUT_ALIGNMENT if is_output else ALIGNMENT
        if part != root and tensors[part].alias_of is None and (start + offset) % alignment == 0:
            tensors[part] = tensors[part].model_copy(update={"alias_of": whole, "offset": offset})
    return None if tensors == graph.tensors else replace(graph, tensors=tensors)


def _is_one_run(copy: Copy) -> bool:
    return len(copy.axes) == 1 and copy.axes[0].strides == (1, 1)
