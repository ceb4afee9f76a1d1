"""Choose which calls to count, so that each network gets its best kernels with few counts.

    1  decide how the network is computed, with uncounted calls at their lower bound
    2  count the chosen calls, and the calls of their layers that may be better
    3  repeat until all chosen calls are counted

Chosen calls then have their counts as costs, and all others cost at least as much. So no choice of kernels, equivalents
and layouts that tensorize considers is better, if no estimate is off by more than its kernel states. The requested
calls depend only on network and kernels, not on earlier counts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from stages.count.call import chosen_calls, possible_calls
from stages.ir.graph import Graph
from stages.tensorize.build import decide
from stages.tensorize.choices import Chosen
from stages.tensorize.costs import Call, CallRom, Costs, KernelCall
from stages.tensorize.pass_context import PassContext

Count = Callable[[Sequence[KernelCall]], Mapping[Call, int]]
"""Return instructions (or cycles) of calls by key, without those that cannot be counted."""


def counted_costs(
    networks: Sequence[tuple[Graph, PassContext]],
    count: Count,
    known: Costs | None = None,
    rom: Mapping[Call, CallRom] | None = None,
) -> Costs:
    """Return costs for choosing the kernels of networks (graphs of quantize, with contexts).

    All networks are for one core. `known` are costs to start with. `rom` has the ROM bytes of the counted calls:
    without it objectives ignore bytes. Exceptions of `count` and tensorize propagate.
    """
    known = known or Costs()
    counts = {layer: dict(row) for layer, row in known.counts.items()}
    costs = replace(known, counts=counts, lower_bounds=True)
    undecided = list(networks)
    while undecided:
        requested: dict[Call, KernelCall] = {}
        undecided = [network for network in undecided if _add_requested(requested, *network, costs)]
        results = count([requested[key] for key in sorted(requested)]) if requested else {}
        for (layer, variant), instructions in results.items():
            counts.setdefault(layer, {})[variant] = instructions
        uncounted = costs.uncounted | (requested.keys() - results.keys())
        bytes_of = {} if rom is None else {key: rom[key] for key in results}
        costs = replace(costs, uncounted=uncounted, rom={**costs.rom, **bytes_of})
    return costs


def needs_counts(graph: Graph, context: PassContext, costs: Costs) -> bool:
    """Return whether a network chosen by these costs has calls to count."""
    context = replace(context, costs=costs)
    return bool(_missing(decide(graph, context)[0], context, costs))


def _add_requested(requested: dict[Call, KernelCall], graph: Graph, context: PassContext, costs: Costs) -> bool:
    """Add a network's calls to count next; return False if there are none."""
    context = replace(context, costs=costs, counting=True)
    chosen = decide(graph, context)[0]
    missing = _missing(chosen, context, costs)
    requested |= missing
    return bool(missing)


def _missing(chosen: Chosen, context: PassContext, costs: Costs) -> dict[Call, KernelCall]:
    """Return chosen calls without a count, and calls of their layers that may cost less."""
    missing: dict[Call, KernelCall] = {}
    streamed = chosen.streamed.values()
    bands = {id(band.view) for layer in streamed for band in (layer.band, layer.rest) if band is not None}
    for view, call in chosen_calls(chosen, context.target):
        if _is_known(call, costs) or call.key in missing:
            continue
        missing[call.key] = call
        if context.is_ruled(view) or id(view) in bands:
            continue
        for other, least in possible_calls(view, context):
            if not _is_known(other, costs) and call.estimate is not None and least < call.estimate:
                missing[other.key] = other
    return missing


def _is_known(call: KernelCall, costs: Costs) -> bool:
    return call.variant in costs.counts.get(call.signature, {}) or call.key in costs.uncounted
