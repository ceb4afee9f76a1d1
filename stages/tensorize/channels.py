"""Channels that the graph can do without (stages.lower.simplify) are left out as far as that costs fewer instructions.

Kernels work on 4, 8 or 16 channels at once, and 17 can cost more than 24: of each coupled of tensors so many channels
stay that their number is a multiple that pays best, over the whole graph. All stay where that promises little.

Estimates alone decide here: only the graph that was chosen is counted (stages.count), and a count beside estimates of
the others would tell against it wherever estimates are low.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from stages.ir.graph import Graph, Layer
from stages.lower.simplify.coupled_channels import CoupledChannels, coupled_channels
from stages.lower.simplify.narrow import Narrowing
from stages.lower.simplify.rewrites import Rewrite
from stages.lower.simplify.value_ranges import value_ranges
from stages.tensorize.elimination import Costs, cheapest
from stages.tensorize.sharing import renames_only

if TYPE_CHECKING:
    from stages.ir.arithmetic.fixed_point import Array
    from stages.ir.operators.channels import Kept
    from stages.tensorize.pass_context import PassContext

_MULTIPLES = (1, 2, 4, 8, 16)
_WORTH = 0.98  # what layers of fewer channels may take, of all and of each coupled: so exactly costs are known


def without_channels(graph: Graph, context: PassContext) -> tuple[Graph, list[Rewrite]]:
    """The pass: the graph with the channels that are worth computing, and what was left out of each coupled.

    The graph itself where that is nothing.
    """
    found = coupled_channels(graph, value_ranges(graph))
    if not found:
        return graph, []
    choices = [_choices(coupled) for coupled in found]
    context = replace(context, costs=context.costs.estimates())
    costs = [
        cost
        for layer in graph.layers
        if not renames_only(graph, layer) and (cost := _cost(graph, layer, found, choices, context))
    ]
    numbers = cheapest({index: len(own) for index, own in enumerate(choices)}, costs)
    for index in numbers:
        own = [cost for cost in costs if index in cost.variables]
        if _total(own, numbers) > _WORTH * _total(own, {**numbers, index: 0}):
            numbers = {**numbers, index: 0}
    if _total(costs, numbers) > _WORTH * _total(costs, dict.fromkeys(numbers, 0)):
        return graph, []
    staying = [own[numbers[index]] for index, own in enumerate(choices)]
    made = Narrowing(graph, found, staying).graph_without()
    written = (_written(graph, made, coupled, own) for coupled, own in zip(found, staying, strict=True))
    return made, [rewrite for rewrite in written if rewrite is not None]


def _total(costs: Sequence[Costs[int]], numbers: Mapping[int, int]) -> float:
    return fsum(one.table[tuple(numbers[index] for index in one.variables)] for one in costs)


def _written(graph: Graph, made: Graph, coupled: CoupledChannels, staying: Array) -> Rewrite | None:
    """What was left out of a coupled, if anything was."""
    names = [layer.outputs[0] for layer in graph.layers if layer.outputs[0] in coupled.sets]
    names = [name for name in names if name in made.tensors]  # of others nothing is left: nobody reads them
    if staying.all() or not names:
        return None
    kept = [coupled.kept(name, staying) for name in names]
    left_out = _numbers(kept, [one.dropped for one in kept], "are constant or of no weight")
    repeated = _numbers(kept, [one.repeated for one in kept], "repeat others, which have their weights too")
    what = ", ".join(part for part in (left_out, repeated) if part)
    return Rewrite(rule="channels", layers=tuple(names), what=what) if what else None


def _numbers(kept: Sequence[Kept], gone: Sequence[Array], why: str) -> str:
    """Which of each tensor's channels are gone and why, in words; '' where none are."""
    counts = [f"{len(own)} of {len(one.values)}" for one, own in zip(kept, gone, strict=True) if len(own)]
    return f"{', '.join(dict.fromkeys(counts))} channels {why}" if counts else ""


def _choices(coupled: CoupledChannels) -> list[Array]:
    """The sets that may stay: all, and the needed ones filled up to each multiple. bool[sets], rising."""
    needed, count = ~coupled.removable, len(coupled.removable)
    spare = np.flatnonzero(coupled.removable)
    numbers = sorted({min(-(-max(int(needed.sum()), 1) // multiple) * multiple, count) for multiple in _MULTIPLES})
    found = []
    for number in [count, *(number for number in numbers if number < count)]:
        staying = needed.copy()
        staying[spare[: number - int(needed.sum())]] = True
        found.append(coupled.filled(staying))
    return found


def _cost(
    graph: Graph, layer: Layer, found: Sequence[CoupledChannels], choices: Sequence[list[Array]], context: PassContext
) -> Costs[int] | None:
    """Return the layer's instructions for each choice of its coupled channels; None if it has none."""
    names = {*layer.inputs, *layer.outputs}
    own = [index for index, coupled in enumerate(found) if names & coupled.sets.keys()]
    if not own:
        return None
    prices = []
    for numbers in product(*(range(len(choices[index])) for index in own)):
        staying = [choices[index][number] for index, number in zip(own, numbers, strict=True)]
        narrowing = Narrowing(graph, [found[index] for index in own], staying)
        prices.append(context.cost(narrowing.view(layer)))
    table = np.array(prices).reshape([len(choices[index]) for index in own])
    return Costs(tuple(own), table)
