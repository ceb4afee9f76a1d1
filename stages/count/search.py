"""Which calls to count, so that every network gets its best kernels: few of all that could compute it.

    1  decide how the network is computed, where a call that was not counted costs the least that it may
    2  count the calls that were chosen, and those of their layers that may be better
    3  repeat until all calls that are chosen are counted

What is chosen then costs what it was counted, and all else at least as much: no choice of kernels, forms and layouts
that the passes of tensorize weigh is better, as far as no estimate is off by more than its kernel states. The calls
that are asked for follow from the network and the kernels alone, so they are the same whatever was counted before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stages.count.call import KernelCall, chosen_calls, possible_calls
from stages.tensorize.build import decide
from stages.tensorize.costs import Call, CallRom, Costs

if TYPE_CHECKING:
    from stages.ir.graph import Graph
    from stages.tensorize.choices import Chosen
    from stages.tensorize.pass_context import PassContext

Count = Callable[[Sequence[KernelCall]], Mapping[Call, int]]
"""Instructions (or cycles) of calls by their keys, without those that cannot be counted."""


def counted_costs(
    networks: Sequence[tuple[Graph, PassContext]],
    count: Count,
    known: Mapping[str, Mapping[str, int]] | None = None,
    rom: Mapping[Call, CallRom] | None = None,
) -> Costs:
    """The costs by which every network (as quantize leaves it, with the context of its recipe) is decided.

    All networks are for one core. `known` are counts to begin with: signature of a layer -> variant -> instructions.
    `rom` has the bytes of ROM of what `count` has counted; without it the objectives that weigh bytes know none.
    Raises what `count` and tensorize raise.
    """
    counts = {layer: dict(row) for layer, row in (known or {}).items()}
    costs = Costs(counts, lower_bounds=True)
    undecided = list(networks)
    while undecided:
        wanted: dict[Call, KernelCall] = {}
        undecided = [network for network in undecided if _add_wanted(wanted, *network, costs)]
        found = count([wanted[key] for key in sorted(wanted)]) if wanted else {}
        for (layer, variant), instructions in found.items():
            counts.setdefault(layer, {})[variant] = instructions
        uncounted = costs.uncounted | (wanted.keys() - found.keys())
        bytes_of = {} if rom is None else {key: rom[key] for key in found}
        costs = replace(costs, uncounted=uncounted, rom={**costs.rom, **bytes_of})
    return costs


def _add_wanted(wanted: dict[Call, KernelCall], graph: Graph, context: PassContext, costs: Costs) -> bool:
    """Add the calls of a network that have to be counted next; False where it needs none."""
    context = replace(context, costs=costs)
    chosen = decide(graph, context)[0]
    missing = _missing(chosen, context, costs)
    wanted |= missing
    return bool(missing)


def _missing(chosen: Chosen, context: PassContext, costs: Costs) -> dict[Call, KernelCall]:
    """Chosen calls without a count, and the calls of their layers that may cost less than these are estimated to."""
    missing: dict[Call, KernelCall] = {}
    for view, call in chosen_calls(chosen, context.target):
        if _is_known(call, costs) or call.key in missing:
            continue
        missing[call.key] = call
        if context.is_ruled(view):
            continue
        for other, least in possible_calls(view, context):
            if not _is_known(other, costs) and call.estimate is not None and least < call.estimate:
                missing[other.key] = other
    return missing


def _is_known(call: KernelCall, costs: Costs) -> bool:
    return call.variant in costs.counts.get(call.signature, {}) or call.key in costs.uncounted
