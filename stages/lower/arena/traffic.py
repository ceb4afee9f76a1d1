"""Bytes that are read and written per inference and buffer.

Buffers with much traffic go to fast memory. An estimate from shapes ranks them:

    output   written once
    input    read once for each window that contains an element (convolutions and pools), else once
    scratch  holds data gathered from the input: written and read as often as the input is read
    weights  each byte is read once for each multiplication with it

The caller writes the model's inputs once more, and reads its outputs.
"""

from collections.abc import Container, Mapping

from stages.ir.graph import Graph, Layer
from stages.ir.layers import Window
from stages.lower.arena.liveness import Liveness, scratch_name


def arena_traffic(
    graph: Graph, lives: Liveness, scratch: Mapping[int, Mapping[str, int]], idle: Container[int] = ()
) -> dict[str, int]:
    """Return bytes read and written by buffer name. `idle` layers compute nothing."""
    traffic = {buffer.name: 0 for buffer in lives.buffers}

    def use(tensor: str, times: int = 1) -> int:
        """Add a tensor's traffic if it is in the arena, and return it."""
        count = graph.tensors[tensor].bytes * times
        if tensor in lives.home:
            traffic[lives.home[tensor]] += count
        return count

    for name in (*graph.inputs, *graph.outputs):
        use(name)
    for layer in graph.layers:
        if layer.index in idle:
            continue
        read = sum(use(name, windows_of(layer)) for name in layer.inputs)
        for name in layer.outputs:
            use(name)
        sizes = scratch.get(layer.index, {})
        total = max(sum(sizes.values()), 1)
        for name, count in sizes.items():
            traffic[scratch_name(layer.index, name)] += 2 * max(count, read * count // total)
    return traffic


def windows_of(layer: Layer) -> int:
    """Return the number of windows that contain an input element; 1 for layers without windows."""
    op = layer.op
    if not isinstance(op, Window):
        return 1
    (height, width), (down, right) = op.kernel, op.stride
    return max(int(height * width // (down * right)), 1)


def reads_of_weights(graph: Graph, layer: Layer, count: int) -> int:
    """Return the number of reads of each constant byte of a layer, which has `count` in all."""
    return max(graph.macs(layer) // max(count, 1), 1)
