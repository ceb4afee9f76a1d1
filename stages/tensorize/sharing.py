"""Place tensors inside others, so that slices and concatenations need no copy.

A slice, or an input of a concatenation, that is contiguous in the larger tensor can be a part of its memory:

    split            x [  a  |  b  |  c  ]    a, b and c are parts of x; nothing is copied
    concatenation    y [  a  |  b  |  c  ]    the layers that compute a, b and c write into y

This holds with batch 1 along the first axis that has more than one element: boxes of several scales, flat features,
channels of planes. Channels of an NHWC image are not contiguous; they are copied.

The larger tensor is alive as long as any of its parts. So memory is shared only if the planned arena, including
scratch, does not grow. Inputs of a concatenation that cannot be parts are copied: the model's inputs, constants,
tensors that are joined twice, and tensors that would be misaligned.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from stages.backends.kernels.copies import SLICES, Copy, copy_of, parts
from stages.ir.graph import Graph, Layer, storage_of
from stages.ir.layers.tensor import ITEM_BYTES
from stages.ir.operators.casting import Cast
from stages.ir.operators.concat_and_split import Concatenation
from stages.ir.operators.movement import Move
from stages.lower.arena import liveness, plan

ALIGNMENT, OUTPUT_ALIGNMENT = 16, 64
"""Alignment of parts in bytes: kernels load whole registers. Model outputs use the largest `emit.alignment`, because a
recipe may set it to 64 bytes for a DMA engine."""

SubTensor = tuple[str, str, int]  # name, containing tensor, offset in bytes
Scratch = Mapping[int, Mapping[str, int]]


def share(graph: Graph, scratch: Callable[[], Scratch], overlaid: frozenset[int]) -> Graph:
    """Return the graph with `alias_of` and `offset` of tensors that become parts of others.

    scratch   returns the scratch of the layers' kernels; called only if there are parts
    overlaid  indices of layers whose output may overlay an input

    The parts of a layer are placed together, or else one by one.
    """
    needed: Scratch | None = None

    def arena(candidate: Graph) -> int:
        assert needed is not None
        return plan(liveness(candidate, needed, overlaid).buffers, ALIGNMENT).total

    for layer in graph.layers:
        layer_parts = list(_parts_of(graph, layer))
        for selected in (layer_parts, *([part] for part in layer_parts if len(layer_parts) > 1)):
            changed = _with_parts(graph, selected)
            if changed is None:
                continue
            needed = scratch() if needed is None else needed
            if arena(changed) <= arena(graph):
                graph = changed
    return graph


def renames_only(graph: Graph, layer: Layer) -> bool:
    """Return whether a layer computes nothing: its output is a view, or all parts are in place."""
    if isinstance(layer.op, Concatenation):
        return not parts(graph.view(layer))
    return isinstance(layer.op, Cast | Move) and all(
        graph.tensors[name].alias_of in layer.inputs for name in layer.outputs
    )


def _parts_of(graph: Graph, layer: Layer) -> Iterator[SubTensor]:
    """Yield the tensors of the layer that are contiguous in a larger one."""
    view, out = graph.view(layer), layer.outputs[0]
    if any(tensor.layout.bits for tensor in (*view.inputs, *view.outputs)):
        return  # a part may start in the middle of a byte
    item_bytes = ITEM_BYTES[graph.tensors[out].dtype]
    if isinstance(layer.op, Move) and layer.kind in SLICES:
        copy, source = copy_of(view), layer.inputs[0]
        root, _ = storage_of(graph.tensors, source)
        if _is_one_run(copy) and not graph.tensors[root].constant:
            yield out, source, copy.source_offset * item_bytes
    if isinstance(layer.op, Concatenation):
        for copy in parts(view):
            x = graph.tensors[layer.inputs[copy.source]]
            root, _ = storage_of(graph.tensors, x.name)
            is_root = graph.tensors[root].bytes == x.bytes
            is_fixed = graph.tensors[root].constant or graph.tensors[root].state or root in graph.inputs
            if _is_one_run(copy) and is_root and not is_fixed:
                yield root, out, copy.target_offset * item_bytes


def _with_parts(graph: Graph, parts: Iterable[SubTensor]) -> Graph | None:
    """Return the graph with the aligned parts placed, None if there are none."""
    tensors = dict(graph.tensors)
    for part, container, offset in parts:
        root, start = storage_of(tensors, container)
        is_output = any(storage_of(tensors, name)[0] == part for name in graph.outputs)
        alignment = OUTPUT_ALIGNMENT if is_output else ALIGNMENT
        if part != root and tensors[part].alias_of is None and (start + offset) % alignment == 0:
            tensors[part] = tensors[part].model_copy(update={"alias_of": container, "offset": offset})
    return None if tensors == graph.tensors else replace(graph, tensors=tensors)


def _is_one_run(copy: Copy) -> bool:
    return len(copy.axes) == 1 and copy.axes[0].strides == (1, 1)
