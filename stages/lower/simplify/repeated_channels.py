"""Sets of channels that repeat another: equal values for every input of the model.

Layers that sum over a repeated channel can read the other one alone, with the weights of both added, if the type of
the weights holds the sums:  w1 * x + w2 * x = (w1 + w2) * x.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from stages.ir.arrays import Array
from stages.ir.graph import Graph, Layer
from stages.ir.layers.channels import channels_of, labels
from stages.ir.reference.integer import to_logical


def channel_labels(graph: Graph) -> dict[str, Array]:
    """Return labels of each tensor's channels, int64[C]: equal labels mean equal values."""
    labels_of: dict[str, Array] = {}
    for name, tensor in graph.tensors.items():
        labels_of[name] = np.arange(channels_of(tensor))
        if tensor.constant and tensor.shape:
            values = to_logical(graph.constants[name], tensor)
            labels_of[name] = labels(values.reshape(-1, values.shape[-1]).T)
    for layer in graph.layers:
        if len(layer.outputs) == 1 and not layer.state:
            output_labels = layer.op.alike(graph.view(layer), [labels_of[name] for name in layer.inputs])
            if output_labels is not None:
                labels_of[layer.outputs[0]] = output_labels
    return labels_of


class Repeats:
    """Finds the sets of coupled channels that can be removed because another replaces them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._labels = channel_labels(graph)
        self._summing: dict[str, list[Layer]] = {}
        for layer in graph.layers:
            if len(layer.outputs) == 1 and layer.op.carries(graph.view(layer)) == ():
                self._summing.setdefault(layer.inputs[0], []).append(layer)

    def of(self, sets: Mapping[str, Array], able: Array) -> tuple[Array, dict[str, Array]]:
        """Return the removed sets, bool[sets], and by tensor the channel that each equals.

        `able` are the sets that may be removed. The first of equal sets is removed last: weights are added from the
        last on, and each sum stays in range.
        """
        removed = np.zeros(len(able), bool)
        equal = {name: np.arange(len(set_numbers)) for name, set_numbers in sets.items()}
        groups = self._groups(sets, able)
        layers = [layer for name in sets for layer in self._summing.get(name, [])] if groups else []
        weights = [_Weights(self._graph, layer) for layer in layers]
        for group in groups:
            kept: list[Mapping[str, Array]] = []
            for number in reversed(group):
                channels = {name: np.flatnonzero(set_numbers == number) for name, set_numbers in sets.items()}
                other = next(
                    (
                        channels_kept
                        for channels_kept in kept
                        if all(set_numbers.can_add(channels, channels_kept) for set_numbers in weights)
                    ),
                    None,
                )
                if other is None:
                    kept.append(channels)
                    continue
                removed[number] = True
                for set_numbers in weights:
                    set_numbers.add(channels, other)
                for name, places in channels.items():
                    equal[name][places] = other[name]
        return removed, equal

    def _groups(self, sets: Mapping[str, Array], able: Array) -> list[Sequence[int]]:
        """Return groups of two or more sets that may go and have equal values in each tensor."""
        groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
        orders = {name: np.argsort(numbers, kind="stable") for name, numbers in sets.items()}
        counts = range(len(able) + 1)
        bounds = {name: np.searchsorted(numbers[orders[name]], counts).tolist() for name, numbers in sets.items()}
        channels = {
            name: [self._labels[name][order[a:b]].tolist() for a, b in pairwise(bounds[name])]
            for name, order in orders.items()
        }
        for number in np.flatnonzero(able).tolist():
            groups.setdefault(tuple(tuple(numbers[number]) for numbers in channels.values()), []).append(number)
        return [group for group in groups.values() if len(group) > 1]


class _Weights:
    """The weights of a layer that sums over its input's channels, as they change."""

    def __init__(self, graph: Graph, layer: Layer) -> None:
        view, self._name = graph.view(layer), layer.inputs[0]
        self._weights = layer.op.factors(view).copy()
        limits, zero = np.iinfo(view.constant("weights").dtype), view.op.weight_zero_point
        # Symmetric int8 weights start at -127 in every file.
        self._least, self._most = limits.min + (limits.min < 0) - zero, limits.max - zero

    def can_add(self, channels: Mapping[str, Array], to: Mapping[str, Array]) -> bool:
        """Return whether the type holds the sums of the weights of two sets of channels."""
        added = self._sum(channels, to)
        return bool(((added >= self._least) & (added <= self._most)).all())

    def add(self, channels: Mapping[str, Array], to: Mapping[str, Array]) -> None:
        """Add the weights of the channels to those of the channels `to`."""
        self._weights[..., to[self._name]] = self._sum(channels, to)

    def _sum(self, channels: Mapping[str, Array], to: Mapping[str, Array]) -> Array:
        added: Array = self._weights[..., channels[self._name]] + self._weights[..., to[self._name]]
        return added
