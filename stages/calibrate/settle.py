"""Measures what leaves it open how a network is computed: kernels whose estimates are nearer to each other than right.

What is chosen by the costs as they are is compared with what would be chosen if it took the most that it may, and all
else the least (stages.calibrate.doubt). What differs is measured, with all that may be best for the same layers, and so
on until nothing differs that is not known. Choices of channels, forms and layouts are settled by the same, since it is
the passes of tensorize that choose. Layers of a table of costs need no measuring, nor have those with one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stages.calibrate.cases import Case, room_for, room_of
from stages.calibrate.doubt import Call, DoubtedCosts, call_of
from stages.tensorize.build import decide
from stages.tensorize.costs import estimated
from stages.tensorize.select import offers_of

if TYPE_CHECKING:
    from stages.graph import Graph, LayerView
    from stages.kernels.kernel import Kernel, KernelParams
    from stages.targets.spec import Target
    from stages.tensorize.choices import Chosen
    from stages.tensorize.select import Offer
    from stages.tensorize.setting import Setting
    from stages.tensorize.settled import Figures

_ROUNDS = 12


def settle(graph: Graph, setting: Setting, measured: Callable[[Sequence[Case]], Iterable[tuple[Case, int]]]) -> Figures:
    """What `measured` finds for all that has to be known to be sure how this graph of quantize is computed.

    Of what it gives nothing, and what the target's memory does not hold, the costs count as they are. Raises what it
    raises, and what tensorize does.
    """
    found: dict[str, dict[str, int]] = {}
    given: set[Call] = set()
    room = room_of(setting.target)
    for _ in range(_ROUNDS):
        known = replace(setting, costs=replace(setting.costs, settled=found))
        in_doubt = doubted(graph, known, frozenset(given))
        if not in_doubt:
            break
        for case, count in measured([case for case in in_doubt.values() if room_for(case.view) <= room]):
            found.setdefault(case.signature, {})[case.variant] = count
        given |= {(text, name) for text, name in in_doubt if name not in found.get(text, {})}
    return found


def doubted(graph: Graph, setting: Setting, given: frozenset[Call] = frozenset()) -> dict[Call, Case]:
    """What to measure next; nothing where what is chosen is right as far as costs can be off.

    Calls that are `given` are not in doubt.
    """
    now = _calls(decide(graph, setting)[0], setting.target)
    costs = DoubtedCosts.of(setting.costs, frozenset(now), given | _without_costs(now, setting))
    others = _calls(decide(graph, replace(setting, costs=costs))[0], setting.target)
    found: dict[Call, Case] = {}
    for call in now.keys() ^ others.keys():
        case = (now | others)[call]
        if costs.bounds(case.kernel, case.view, case.params, setting.target) is not None:
            found[call] = case
        if not setting.is_ruled(case.view):
            found |= _rivals(case.view, setting, costs)
    return {call: found[call] for call in sorted(found)}


def _calls(chosen: Chosen, target: Target) -> dict[Call, Case]:
    """The calls of a network, but for those of an engine, which has a model of its own."""
    views = ((chosen.graph.view(chosen.graph.layers[index]), choice) for index, choice in chosen.choices.items())
    return dict(_named(view, choice.kernel, choice.params, target) for view, choice in views if choice.kernel.lowers)


def _offers(view: LayerView, setting: Setting) -> list[Offer]:
    able = [one for one in setting.kernels if one.is_for(view.op) and not one.why_not(view, setting.target)]
    return offers_of(view, setting.target, able, setting.costs)


def _without_costs(calls: Mapping[Call, Case], setting: Setting) -> frozenset[Call]:
    """Those whose costs nobody knows and beside which there is nothing to take.

    If they took the most that they may, all other layers together would be little beside them: a byte of ROM would be
    worth more than any kernel saves.
    """
    offers = {call: _offers(case.view, setting) for call, case in calls.items() if case.estimate is None}
    return frozenset(call for call, found in offers.items() if len(found) == 1 and found[0].price.cost is None)


def _rivals(view: LayerView, setting: Setting, costs: DoubtedCosts) -> dict[Call, Case]:
    """Of the kernels for a layer those in doubt that may be the best."""
    bounds = []
    for offer in _offers(view, setting):
        between = costs.bounds(offer.kernel, view, offer.params, setting.target)
        cost = float("inf") if offer.price.cost is None else offer.price.cost
        bounds.append((offer, between or (cost, cost), between is not None))
    best = min((most for _, (_, most), _ in bounds), default=0.0)
    return dict(
        _named(view, offer.kernel, offer.params, setting.target)
        for offer, (least, _), is_open in bounds
        if is_open and least <= best
    )


def _named(view: LayerView, kernel: Kernel, params: KernelParams, target: Target) -> tuple[Call, Case]:
    call, seen = call_of(kernel, view, params), kernel.seen(view)
    return call, Case(seen, kernel, params, *call, estimated(kernel, seen, params, target))
