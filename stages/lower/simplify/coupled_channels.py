"""Channels that can only go together: those of a tensor and those that operators make of them, one by one.

    conv2d -> x -> depthwise_conv2d -> y -> conv2d       channel 3 of x and channel 3 of y are one bundle

A bundle can go when each layer that sums over one of its channels can do without it: because the channel is constant,
because its weights are zero, or because another bundle has the same values and takes its weights on. The others are
read by layers whose own channels are of the bundle. Tensors with a bundle in common are a coupled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from stages.ir.arithmetic.fixed_point import Array
from stages.ir.graph import Graph
from stages.ir.operators.channels import NEW, Kept, ValueRange, channels_of
from stages.lower.simplify.repeated_channels import Repeats

Edges = list[tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class CoupledChannels:
    """For each of its tensors the bundle, from 0, of each channel, int[C]; which sets can go, bool[sets].

    `values` are what the channels of each tensor are where they are constant, int64[C]; `equal` is, for channels that
    can go because they repeat another, that one, and for all others themselves, int64[C]. Of the sets that go the
    last go first: weights that are added up are within their type then.
    """

    sets: Mapping[str, Array]
    removable: Array
    values: Mapping[str, Array]
    equal: Mapping[str, Array]

    def filled(self, staying: Array) -> Array:
        """These sets, and one of each tensor that would have none."""
        made = staying.copy()
        for own in self.sets.values():
            if not made[own].any():
                made[own[0]] = True
        return made

    def kept(self, name: str, staying: Array) -> Kept:
        """What is left of a tensor with the sets that stay, bool[sets]."""
        stays, equal = staying[self.sets[name]], self.equal[name]
        return Kept(np.flatnonzero(stays), self.values[name], np.where(stays, np.arange(len(equal)), equal))


def coupled_channels(graph: Graph, reach: Mapping[str, ValueRange]) -> list[CoupledChannels]:
    """All coupled_channels of which a bundle can go, in the order of the graph's tensors."""
    sizes = [channels_of(tensor) for tensor in graph.tensors.values()]
    ends = list(accumulate(sizes, initial=0))
    spans = zip(graph.tensors, pairwise(ends), strict=True)
    place = {name: np.arange(*span) for name, span in spans}
    stays, summed = np.zeros(ends[-1], bool), np.zeros(ends[-1], bool)
    for name, tensor in graph.tensors.items():
        if name not in reach or name in (*graph.inputs, *graph.outputs) or (tensor.constant and tensor.layout):
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
            if name in reach:
                summed[place[name]] |= ~layer.op.absorbs(graph.view(layer), reach[name])
            else:
                stays[place[name]] = True
        for name, sources in zip(layer.inputs, carried or (), strict=False):
            made = sources != NEW
            if made.any():
                channels.append((place[layer.outputs[0]][made], place[name][sources[made]]))
                tensors.append((number[layer.outputs[0]], number[name]))
    bundle, coupled = _components(channels, len(stays)), _components(tensors, len(sizes))
    return _found(graph, place, bundle, (stays, summed), coupled, reach)


def _components(edges: Edges, count: int) -> Array:
    """The number of the component of each of `count` nodes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, columns = (np.concatenate([np.zeros(0, int), *(edge[side] for edge in edges)]) for side in (0, 1))
    graph = coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(count, count))
    labels: Array = connected_components(graph, directed=False)[1]
    return labels


def _found(
    graph: Graph,
    place: Mapping[str, Array],
    bundle: Array,
    needed: tuple[Array, Array],
    coupled: Array,
    reach: Mapping[str, ValueRange],
) -> list[CoupledChannels]:
    """`needed` are the channels that have to be there, and those that sums need, or another with the same values."""
    must, summed = (np.isin(np.arange(bundle.max(initial=-1) + 1), bundle[channels]) for channels in needed)
    repeats = Repeats(graph)
    members: dict[int, list[str]] = {}
    for name, label in zip(graph.tensors, coupled, strict=True):
        members.setdefault(int(label), []).append(name)
    found = []
    for names in members.values():
        own, numbers = np.unique(np.concatenate([bundle[place[name]] for name in names]), return_inverse=True)
        if must[own].all():
            continue
        parts = np.split(numbers, list(accumulate(len(place[name]) for name in names))[:-1])
        sets = dict(zip(names, parts, strict=True))
        removable = ~(must | summed)[own]
        gone, equal = repeats.of(sets, ~must[own] & ~removable)
        if not (removable | gone).any():
            continue
        values = {name: reach[name].least for name in names if name in reach}
        found.append(CoupledChannels(sets, removable | gone, values, equal))
    return found
