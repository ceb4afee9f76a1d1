"""Channels that can only be removed together, because operators map one to the other.

    conv2d -> x -> depthwise_conv2d -> y -> conv2d       channel 3 of x and channel 3 of y are coupled

A set of coupled channels can be removed if each layer that sums over one of its channels can do without it: because the
channel is constant, because its weights are zero, or because another set has the same values and takes its weights. All
other readers have output channels in the set.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from stages.ir.arrays import Array
from stages.ir.graph import Graph
from stages.ir.layers.channels import NEW, Kept, ValueRange, channels_of
from stages.lower.simplify.repeated_channels import Repeats

Edges = list[tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class CoupledChannels:
    """Tensors that are connected by coupled channels, and their sets.

    sets       for each tensor, the set number (from 0) of each channel, int[C]
    removable  which sets can be removed, bool[sets]
    values     for each tensor, the values of constant channels, int64[C]
    equal      for each tensor and channel, the channel that it repeats, or itself, int64[C]

    Sets are removed from the last to the first: this keeps sums of weights within their type.
    """

    sets: Mapping[str, Array]
    removable: Array
    values: Mapping[str, Array]
    equal: Mapping[str, Array]

    def filled(self, staying: Array) -> Array:
        """Return `staying`, with one more set for each tensor that would lose all channels."""
        result = staying.copy()
        for numbers in self.sets.values():
            if not result[numbers].any():
                result[numbers[0]] = True
        return result

    def kept(self, name: str, staying: Array) -> Kept:
        """Return the rest of a tensor, if the sets `staying`, bool[sets], stay."""
        stays, equal = staying[self.sets[name]], self.equal[name]
        return Kept(np.flatnonzero(stays), self.values[name], np.where(stays, np.arange(len(equal)), equal))


def coupled_channels(graph: Graph, ranges: Mapping[str, ValueRange]) -> list[CoupledChannels]:
    """Return all coupled channels with a removable set, in the order of the graph's tensors."""
    sizes = [channels_of(tensor) for tensor in graph.tensors.values()]
    ends = list(accumulate(sizes, initial=0))
    spans = zip(graph.tensors, pairwise(ends), strict=True)
    place = {name: np.arange(*span) for name, span in spans}
    stays, summed = np.zeros(ends[-1], bool), np.zeros(ends[-1], bool)
    for name, tensor in graph.tensors.items():
        if name not in ranges or name in (*graph.inputs, *graph.outputs) or (tensor.constant and tensor.layout):
            stays[place[name]] = True
    number = {name: np.array([index]) for index, name in enumerate(graph.tensors)}
    channels: Edges = []
    tensors: Edges = []
    for layer in graph.layers:
        carried = layer.op.carries(graph.view(layer)) if len(layer.outputs) == 1 else None
        if carried is None:
            for name in (*layer.inputs, *layer.outputs):
                stays[place[name]] = True
        elif not carried:
            name = layer.inputs[0]
            if name in ranges:
                summed[place[name]] |= ~layer.op.absorbs(graph.view(layer), ranges[name])
            else:
                stays[place[name]] = True
        for name, sources in zip(layer.inputs, carried or (), strict=False):
            carried_channels = sources != NEW
            if carried_channels.any():
                channels.append((place[layer.outputs[0]][carried_channels], place[name][sources[carried_channels]]))
                tensors.append((number[layer.outputs[0]], number[name]))
    set_of, coupled = _components(channels, len(stays)), _components(tensors, len(sizes))
    return _removable(graph, place, set_of, (stays, summed), coupled, ranges)


def _components(edges: Edges, count: int) -> Array:
    """Return the component number of each of `count` nodes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, columns = (np.concatenate([np.zeros(0, int), *(edge[side] for edge in edges)]) for side in (0, 1))
    graph = coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(count, count))
    labels: Array = connected_components(graph, directed=False)[1]
    return labels


def _removable(
    graph: Graph,
    place: Mapping[str, Array],
    set_of: Array,
    needed: tuple[Array, Array],
    coupled: Array,
    ranges: Mapping[str, ValueRange],
) -> list[CoupledChannels]:
    """Return the coupled channels with a removable set.

    `needed` are the channels that must stay, and those that sums need unless they repeat another.
    """
    required, summed = (np.isin(np.arange(set_of.max(initial=-1) + 1), set_of[channels]) for channels in needed)
    repeats = Repeats(graph)
    members: dict[int, list[str]] = {}
    for name, label in zip(graph.tensors, coupled, strict=True):
        members.setdefault(int(label), []).append(name)
    groups = []
    for names in members.values():
        group_sets, numbers = np.unique(np.concatenate([set_of[place[name]] for name in names]), return_inverse=True)
        if required[group_sets].all():
            continue
        parts = np.split(numbers, list(accumulate(len(place[name]) for name in names))[:-1])
        sets = dict(zip(names, parts, strict=True))
        removable = ~(required | summed)[group_sets]
        repeated, equal = repeats.of(sets, ~required[group_sets] & ~removable)
        if not (removable | repeated).any():
            continue
        values = {name: ranges[name].least for name in names if name in ranges}
        groups.append(CoupledChannels(sets, removable | repeated, values, equal))
    return groups
