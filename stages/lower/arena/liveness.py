"""The lifetime of each tensor's memory.

Time is the layer's index. A graph input is alive from layer 0 (it is filled before the run), a graph output to the last
layer. Any other tensor is alive from the layer that writes it to its last reader. Scratch lives for its layer only, or
from its early transfers on. Tensors that share memory (`alias_of`, or an in-place layer) are one buffer, alive while
any of them is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.ir.graph import Graph, Layer, Tensor, storage_of
from stages.lower.arena.planner import Buffer, round_up

if TYPE_CHECKING:
    from stages.lower.streaming.plan import StreamedGroup

_ALIGNMENT = 16  # bytes: of tensors, also where rows of padding lie above them


@dataclass(frozen=True)
class Liveness:
    """The buffers of a graph.

    home      buffer name of each tensor in the arena; constants and state have none
    offset    offset of each of these tensors in its buffer, in bytes
    in_place  layer index -> number of the input that the layer's output overlays
    """

    buffers: tuple[Buffer, ...]
    home: Mapping[str, str]
    offset: Mapping[str, int]
    in_place: Mapping[int, int] = field(default_factory=dict)


def scratch_name(layer: int, name: str) -> str:
    """Return the name of a layer's scratch buffer in the plan."""
    return f"scratch:{layer}:{name}"


def liveness(
    graph: Graph,
    scratch: Mapping[int, Mapping[str, int]] | None = None,
    may_overlay: frozenset[int] = frozenset(),
    ahead: Mapping[str, int] | None = None,
    groups: Sequence[StreamedGroup] = (),
) -> Liveness:
    """Return the buffers of `graph`.

    scratch      bytes by name for each layer index
    may_overlay  indices of layers whose kernel may write its output over an input (`Kernel.overlays`)
    ahead        by buffer name, the earlier layer from which scratch is in use
    groups       layers that run by rows: all their buffers are alive while the group runs
    """
    places = {name: storage_of(graph.tensors, name) for name, tensor in graph.tensors.items() if not tensor.constant}
    elsewhere = {name for name, tensor in graph.tensors.items() if tensor.constant or tensor.state}
    home = {name: root for name, (root, _) in places.items() if root not in elsewhere}
    for group in groups:
        for name, tensor in group.tensors.items():
            if tensor.place_of:
                old, new = home[name], home[tensor.place_of]
                home.update({other: new for other, root in home.items() if root == old})
    first, last = _spans(graph, home)
    for group in groups:
        for name in group.tensors:
            first[home[name]] = min(first[home[name]], group.first)
            last[home[name]] = max(last[home[name]], group.end - 1)
    in_place: dict[int, int] = {}
    for layer in graph.layers:
        if layer.index not in may_overlay:
            continue
        number = _dying_input(graph, layer, home, first, last)
        if number is not None:
            old, new = home[layer.outputs[0]], home[layer.inputs[number]]
            home.update({name: new for name, root in home.items() if root == old})
            last[new] = max(last[new], last.pop(old))
            first.pop(old)
            in_place[layer.index] = number
    size = {root: max(graph.tensors[name].bytes for name in home if home[name] == root) for root in first}
    rolling = {name: group for group in groups for name in group.capacity}
    size |= {home[name]: group.bytes_of(name) for name, group in rolling.items()}
    above: dict[str, int] = {}
    for group in groups:
        for name, tensor in group.tensors.items():
            if tensor.whole:
                root = home[name]
                above[root] = max(above.get(root, 0), round_up(tensor.above * tensor.row_bytes, _ALIGNMENT))
                below = places[name][1] + (tensor.height + tensor.below) * tensor.row_bytes
                size[root] = max(size[root], below)
    size = {root: count + above.get(root, 0) for root, count in size.items()}
    over: dict[str, tuple[str, int]] = {}
    for group in groups:
        if group.distance is not None:
            source, output = home[group.source], home[group.output]
            if source != output and last[source] < group.end and first[output] == group.first:
                begin = {name: places[name][1] + above.get(home[name], 0) for name in (group.source, group.output)}
                over[output] = source, group.distance + begin[group.output] - begin[group.source]
    tensors = [Buffer(root, size[root], first[root], last[root], "tensor", *over.get(root, ())) for root in first]
    begins = dict(ahead or {})
    for group in groups:
        if group.sums is not None:
            begins[scratch_name(group.sums.index, "sums")] = group.first
    extra = [
        Buffer(scratch_name(index, name), count, begins.get(scratch_name(index, name), index), index, "scratch")
        for index, sizes in sorted((scratch or {}).items())
        for name, count in sizes.items()
    ]
    home = {name: root for name, root in home.items() if root in first}
    offset = {name: places[name][1] + above.get(root, 0) for name, root in home.items()}
    return Liveness(tuple(tensors + extra), home, offset, in_place)


def _spans(graph: Graph, home: Mapping[str, str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the first and last layer of each buffer in use."""
    end = max(len(graph.layers) - 1, 0)
    first: dict[str, int] = {}
    last: dict[str, int] = {}

    def use(name: str, when: int) -> None:
        if name in home:
            first[home[name]] = min(first.get(home[name], when), when)
            last[home[name]] = max(last.get(home[name], when), when)

    for name in graph.inputs:
        use(name, 0)
    for layer in graph.layers:
        for name in (*layer.inputs, *layer.outputs, *layer.state):
            use(name, layer.index)
    for name in graph.outputs:
        use(name, end)
    return first, last


def _dying_input(
    graph: Graph, layer: Layer, home: Mapping[str, str], first: Mapping[str, int], last: Mapping[str, int]
) -> int | None:
    """Return the number of the input that the only output may overlay, None if there is none.

    The input has the output's size and order of elements, and this layer is its last reader. Parts of larger tensors
    stay in place, both as input and as output.
    """
    if len(layer.outputs) != 1 or layer.outputs[0] not in home:
        return None
    out = home[layer.outputs[0]]
    if first[out] != layer.index or _is_part(graph, layer.outputs[0]):
        return None
    kept = {home[name] for name in graph.outputs if name in home}
    for number, name in enumerate(layer.inputs):
        if name not in home or home[name] == out or home[name] in kept or _is_part(graph, name):
            continue
        if any(home.get(other) == home[name] and _is_part(graph, other) for other in layer.inputs):
            continue  # the layer also reads a part of this tensor, which would be overwritten too early
        if _same_place(graph.tensors[name], graph.tensors[layer.outputs[0]]) and last[home[name]] == layer.index:
            return number
    return None


def _same_place(x: Tensor, y: Tensor) -> bool:
    """Return whether element i of both tensors is at the same byte.

    Planes of one channel or one pixel count as different from NHWC, although they are not.
    """
    return x.bytes == y.bytes and _order(x) == _order(y)


def _order(tensor: Tensor) -> str:
    return "" if tensor.layout == "NHWC" else tensor.layout


def _is_part(graph: Graph, name: str) -> bool:
    """Return whether the tensor's memory is a part of a larger tensor's."""
    root, _ = storage_of(graph.tensors, name)
    return graph.tensors[root].bytes != graph.tensors[name].bytes
