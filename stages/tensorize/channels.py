"""Remove channels that the graph does not need, as far as that saves instructions.

Kernels work on 4, 8 or 16 channels at once, so 17 channels can cost more than 24. For each group of coupled channels
the multiple with the lowest cost over the whole graph is kept. All channels stay if the saving is small.

Costs are estimates: only the resulting graph is counted (stages.count). Counts for one graph and estimates for the
others would not be comparable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import fsum

import numpy as np

from stages.ir.arrays import Array
from stages.ir.graph import Graph, Layer
from stages.ir.layers.channels import Kept
from stages.lower.simplify.coupled_channels import CoupledChannels, coupled_channels
from stages.lower.simplify.narrow import Narrowing
from stages.lower.simplify.rewrites import Rewrite
from stages.lower.simplify.value_ranges import value_ranges
from stages.tensorize.elimination import Costs, cheapest
from stages.tensorize.pass_context import PassContext
from stages.tensorize.sharing import renames_only

_MULTIPLES = (1, 2, 4, 8, 16)
_WORTH = 0.98  # keep all channels unless fewer save 2 % of the instructions, over all and in each group


def without_channels(graph: Graph, context: PassContext) -> tuple[Graph, list[Rewrite]]:
    """Return the graph with the channels that pay off, and the rewrites.

    Returns the graph itself if no channel is removed.
    """
    groups = coupled_channels(graph, value_ranges(graph))
    if not groups:
        return graph, []
    choices = [_choices(coupled) for coupled in groups]
    context = replace(context, costs=context.costs.estimates())
    costs = [
        cost
        for layer in graph.layers
        if not renames_only(graph, layer) and (cost := _cost(graph, layer, groups, choices, context))
    ]
    numbers = cheapest({index: len(numbered) for index, numbered in enumerate(choices)}, costs)
    for index in numbers:
        numbered = [cost for cost in costs if index in cost.variables]
        if _total(numbered, numbers) > _WORTH * _total(numbered, {**numbers, index: 0}):
            numbers = {**numbers, index: 0}
    if _total(costs, numbers) > _WORTH * _total(costs, dict.fromkeys(numbers, 0)):
        return graph, []
    staying = [numbered[numbers[index]] for index, numbered in enumerate(choices)]
    narrowed = Narrowing(graph, groups, staying).graph_without()
    written = (_written(graph, narrowed, coupled, numbered) for coupled, numbered in zip(groups, staying, strict=True))
    return narrowed, [rewrite for rewrite in written if rewrite is not None]


def _total(costs: Sequence[Costs[int]], numbers: Mapping[int, int]) -> float:
    return fsum(cost.table[tuple(numbers[index] for index in cost.variables)] for cost in costs)


def _written(graph: Graph, narrowed: Graph, coupled: CoupledChannels, staying: Array) -> Rewrite | None:
    """Return the rewrite for a group of coupled channels, None if nothing was removed from it."""
    names = [layer.outputs[0] for layer in graph.layers if layer.outputs[0] in coupled.sets]
    names = [name for name in names if name in narrowed.tensors]  # tensors that nothing reads are gone
    if staying.all() or not names:
        return None
    kept = [coupled.kept(name, staying) for name in names]
    left_out = _numbers(kept, [kept_channels.dropped for kept_channels in kept], "are constant or have zero weights")
    repeated = _numbers(
        kept, [kept_channels.repeated for kept_channels in kept], "repeat others, which take over their weights"
    )
    what = ", ".join(part for part in (left_out, repeated) if part)
    return Rewrite(rule="channels", layers=tuple(names), what=what) if what else None


def _numbers(kept: Sequence[Kept], removed: Sequence[Array], why: str) -> str:
    """Return the number of removed channels of each tensor with the reason, or ''."""
    counts = [
        f"{len(channels)} of {len(before.values)}"
        for before, channels in zip(kept, removed, strict=True)
        if len(channels)
    ]
    return f"{', '.join(dict.fromkeys(counts))} channels {why}" if counts else ""


def _choices(coupled: CoupledChannels) -> list[Array]:
    """Return the sets that may stay: all, then the needed ones padded to each multiple.

    Each is bool[sets]; removable sets are added in rising order.
    """
    needed, count = ~coupled.removable, len(coupled.removable)
    removable = np.flatnonzero(coupled.removable)
    numbers = sorted({min(-(-max(int(needed.sum()), 1) // multiple) * multiple, count) for multiple in _MULTIPLES})
    choices = []
    for number in [count, *(number for number in numbers if number < count)]:
        staying = needed.copy()
        staying[removable[: number - int(needed.sum())]] = True
        choices.append(coupled.filled(staying))
    return choices


def _cost(
    graph: Graph, layer: Layer, groups: Sequence[CoupledChannels], choices: Sequence[list[Array]], context: PassContext
) -> Costs[int] | None:
    """Return the layer's instructions for each choice of its coupled channels, or None."""
    names = {*layer.inputs, *layer.outputs}
    affected = [index for index, coupled in enumerate(groups) if names & coupled.sets.keys()]
    if not affected:
        return None
    prices = []
    for numbers in product(*(range(len(choices[index])) for index in affected)):
        staying = [choices[index][number] for index, number in zip(affected, numbers, strict=True)]
        narrowing = Narrowing(graph, [groups[index] for index in affected], staying)
        prices.append(context.cost(narrowing.view(layer)))
    table = np.array(prices).reshape([len(choices[index]) for index in affected])
    return Costs(tuple(affected), table)
