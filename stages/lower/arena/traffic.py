"""How much each buffer is read and written in one inference, in bytes: what decides which of them lie in fast memory.

An estimate from shapes alone, good enough to tell buffers apart:

    output   written once
    input    read once for each window that an element is in (convolutions and pools), else once
    scratch  holds what was gathered from the input: written and read as often as that is read
    weights  a byte is read once for each multiplication with it

Inputs of the model are written once more, by whoever runs it, and its outputs read.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from stages.lower.arena.liveness import Liveness, scratch_name

if TYPE_CHECKING:
    from stages.ir.graph import Graph, Layer


def arena_traffic(
    graph: Graph, lives: Liveness, scratch: Mapping[int, Mapping[str, int]], idle: Container[int] = ()
) -> dict[str, int]:
    """Bytes read and written by name of the buffer. `idle` are the indices of layers that compute nothing."""
    found = {buffer.name: 0 for buffer in lives.buffers}

    def use(tensor: str, times: int = 1) -> int:
        """Counts a tensor that is in the arena; returns its traffic."""
        count = graph.tensors[tensor].bytes * times
        if tensor in lives.home:
            found[lives.home[tensor]] += count
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
        whole = max(sum(sizes.values()), 1)
        for name, count in sizes.items():
            found[scratch_name(layer.index, name)] += 2 * max(count, read * count // whole)
    return found


def windows_of(layer: Layer) -> int:
    """In how many windows of a convolution or a pool an element of its input is, 1 for all other layers."""
    op: Any = layer.op
    if op.op not in ("conv2d", "depthwise_conv2d", "avg_pool2d", "max_pool2d"):
        return 1
    (height, width), (down, right) = op.kernel, op.stride
    return max(int(height * width // (down * right)), 1)


def reads_of_weights(graph: Graph, layer: Layer, count: int) -> int:
    """How often each byte of a layer's constants is read, of which there are `count` bytes in all."""
    return max(graph.macs(layer) // max(count, 1), 1)
