"""Bundles of channels that repeat another: all their values are the same, for every input of the model.

Layers that sum over a channel that repeats one can read that one alone, with the weights of both added up, where the
type of the weights holds them:  w1 * x + w2 * x = (w1 + w2) * x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from stages.ir.arithmetic.fixed_point import Array
from stages.ir.graph import Graph, Layer
from stages.ir.operators.channels import channels_of, labels
from stages.ir.reference.integer import to_logical


def alike(graph: Graph) -> dict[str, Array]:
    """For each tensor a label for each channel, int64[C], equal where the channels are, for every input."""
    found: dict[str, Array] = {}
    for name, tensor in graph.tensors.items():
        found[name] = np.arange(channels_of(tensor))
        if tensor.constant and tensor.shape:
            values = to_logical(graph.constants[name], tensor)
            found[name] = labels(values.reshape(-1, values.shape[-1]).T)
    for layer in graph.layers:
        if len(layer.outputs) == 1 and not layer.state:
            made = layer.op.alike(graph.view(layer), [found[name] for name in layer.inputs])
            if made is not None:
                found[layer.outputs[0]] = made
    return found


class Repeats:
    """Finds, coupled by coupled, which sets can go because another takes their place."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._labels = alike(graph)
        self._summing: dict[str, list[Layer]] = {}
        for layer in graph.layers:
            if len(layer.outputs) == 1 and layer.op.carries(graph.view(layer)) == ():
                self._summing.setdefault(layer.inputs[0], []).append(layer)

    def of(self, sets: Mapping[str, Array], able: Array) -> tuple[Array, dict[str, Array]]:
        """Which of the sets go, bool[sets], all of them `able` to; for each tensor the channel that each equals.

        The first of equal sets goes last: their weights are added up from the last on, and each sum is in range.
        """
        gone = np.zeros(len(able), bool)
        equal = {name: np.arange(len(own)) for name, own in sets.items()}
        groups = self._groups(sets, able)
        layers = [layer for name in sets for layer in self._summing.get(name, [])] if groups else []
        weights = [_Weights(self._graph, layer) for layer in layers]
        for alike_ones in groups:
            kept: list[Mapping[str, Array]] = []
            for number in reversed(alike_ones):
                channels = {name: np.flatnonzero(own == number) for name, own in sets.items()}
                other = next((one for one in kept if all(own.can_add(channels, one) for own in weights)), None)
                if other is None:
                    kept.append(channels)
                    continue
                gone[number] = True
                for own in weights:
                    own.add(channels, other)
                for name, places in channels.items():
                    equal[name][places] = other[name]
        return gone, equal

    def _groups(self, sets: Mapping[str, Array], able: Array) -> list[Sequence[int]]:
        """Bundles that are able to go and have the same values in each tensor, rising; two or more of each kind."""
        found: dict[tuple[tuple[int, ...], ...], list[int]] = {}
        orders = {name: np.argsort(own, kind="stable") for name, own in sets.items()}
        counts = range(len(able) + 1)
        bounds = {name: np.searchsorted(own[orders[name]], counts).tolist() for name, own in sets.items()}
        channels = {
            name: [self._labels[name][order[a:b]].tolist() for a, b in pairwise(bounds[name])]
            for name, order in orders.items()
        }
        for number in np.flatnonzero(able).tolist():
            found.setdefault(tuple(tuple(own[number]) for own in channels.values()), []).append(number)
        return [group for group in found.values() if len(group) > 1]


class _Weights:
    """The weights of a layer that sums over the channels of its input, as they become."""

    def __init__(self, graph: Graph, layer: Layer) -> None:
        view, self._name = graph.view(layer), layer.inputs[0]
        self._weights = layer.op.factors(view).copy()
        limits, zero = np.iinfo(view.constant("weights").dtype), view.op.weight_zero_point
        # Symmetric weights of int8 are from -127 on in every file.
        self._least, self._most = limits.min + (limits.min < 0) - zero, limits.max - zero

    def can_add(self, channels: Mapping[str, Array], to: Mapping[str, Array]) -> bool:
        """Whether the type holds the sums of the weights of two sets, given by their channels."""
        added = self._sum(channels, to)
        return bool(((added >= self._least) & (added <= self._most)).all())

    def add(self, channels: Mapping[str, Array], to: Mapping[str, Array]) -> None:
        self._weights[..., to[self._name]] = self._sum(channels, to)

    def _sum(self, channels: Mapping[str, Array], to: Mapping[str, Array]) -> Array:
        added: Array = self._weights[..., channels[self._name]] + self._weights[..., to[self._name]]
        return added
