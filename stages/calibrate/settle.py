"""Measures what leaves it open how a network is computed: kernels whose estimates are nearer to each other than right.

What is chosen by the costs as they are is compared with what would be chosen if it took the most that it may, and all
else the least (stages.calibrate.doubt). What differs is measured, with all that may be best for the same layers, and so
on until nothing differs that is not known. Choices of forms and layouts are settled by the same, since it is the passes
of tensorize that choose; that of channels is the table's alone (stages.tensorize.channels). Layers of a table of costs
need no measuring, nor have those with one kernel.

With `measure: close` that is all. With `measure: worth` what is little stays as it is: so many of the calls in doubt as
all together may be off by no more than a hundredth of the network's instructions. And nothing is measured, or no more,
where all that is in doubt is not worth a fiftieth of these: what may be saved on average, if half of what is between
the bounds of both choices is a deviation, which is more than was seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING

from stages.calibrate.cases import Case, room_for, room_of
from stages.calibrate.doubt import Call, DoubtedCosts, call_of
from stages.tensorize.build import decide
from stages.tensorize.costs import estimated, signature
from stages.tensorize.logarithms import exp
from stages.tensorize.select import offers_of

if TYPE_CHECKING:
    from stages.graph import Graph, LayerView
    from stages.kernels.kernel import Kernel, KernelParams
    from stages.targets.spec import Target
    from stages.tensorize.choices import Chosen
    from stages.tensorize.select import Offer
    from stages.tensorize.setting import Setting
    from stages.tensorize.settled import Figures

_ROUNDS = {"worth": 2, "close": 12}
_LITTLE, _WORTH = 0.01, 0.02  # of the network's instructions


@dataclass(frozen=True)
class Open:
    """A call that is in doubt, and by how much all layers that are computed by it may be off together."""

    case: Case
    width: float


@dataclass(frozen=True)
class InDoubt:
    """What to measure next of a network that takes so many instructions, as far as is known, and what may come of it.

    `gain` is what knowing all calls may be expected to save.
    """

    calls: Mapping[Call, Open]
    total: float
    gain: float

    def little(self, left: float) -> dict[Call, float]:
        """Those that are not worth it, as long as they are off by no more than what is left: the least first."""
        found: dict[Call, float] = {}
        for call, one in sorted(self.calls.items(), key=lambda item: (item[1].width, item[0])):
            left -= one.width
            if left < 0:
                break
            found[call] = one.width
        return found


def settle(graph: Graph, setting: Setting, measured: Callable[[Sequence[Case]], Iterable[tuple[Case, int]]]) -> Figures:
    """What `measured` finds for all that has to be known to be sure how this graph of quantize is computed.

    Of what it gives nothing, and what the target's memory does not hold, the costs count as they are. Raises what it
    raises, and what tensorize does.
    """
    found: dict[str, dict[str, int]] = {}
    given: set[Call] = set()
    off = 0.0
    room = room_of(setting.target)
    worth = setting.config.measure == "worth"
    for _ in range(_ROUNDS["worth" if worth else "close"]):
        known = replace(setting, costs=replace(setting.costs, settled=found))
        in_doubt = doubted(graph, known, frozenset(given))
        if not in_doubt.calls or (worth and in_doubt.gain < _WORTH * in_doubt.total):
            break
        little = in_doubt.little(_LITTLE * in_doubt.total - off) if worth else {}
        off += fsum(little.values())
        cases = [one.case for call, one in in_doubt.calls.items() if call not in little]
        for case, count in measured([case for case in cases if room_for(case.view) <= room]) if cases else ():
            found.setdefault(case.signature, {})[case.variant] = count
        given |= {(text, name) for text, name in in_doubt.calls if name not in found.get(text, {})}
    return found


def doubted(graph: Graph, setting: Setting, given: frozenset[Call] = frozenset()) -> InDoubt:
    """What to measure next; no calls where what is chosen is right as far as costs can be off.

    Calls that are `given` are not in doubt.
    """
    wide = setting.config.measure != "worth"
    setting = replace(setting, less_code=False)  # a tie is none of costs that are at the far end
    chosen = decide(graph, setting)[0]
    now = _calls(chosen, setting.target)
    costs = DoubtedCosts.of(setting.costs, frozenset(now), given | _without_costs(now, setting), wide=wide)
    instead = decide(graph, replace(setting, costs=costs))[0]
    others = _calls(instead, setting.target)
    found: dict[Call, Case] = {}
    for call in now.keys() ^ others.keys():
        case = (now | others)[call]
        if costs.bounds(case.kernel, case.view, case.params, setting.target) is not None:
            found[call] = case
        if not setting.is_ruled(case.view):
            found |= _rivals(case.view, setting, costs)
    often = _signatures(chosen) | _signatures(instead)
    opened = {
        call: Open(case, often[call[0]] * costs.width(case.kernel, case.view, case.params, setting.target))
        for call, case in sorted(found.items())
    }
    if setting.config.optimize_for == "rom":  # bytes count too, and what they are worth depends on costs
        return InDoubt(opened, 0.0, float("inf"))
    total = _cost(chosen, setting)
    likely = _cost(instead, setting) - total
    at_best = _cost(chosen, replace(setting, costs=costs)) - _cost(instead, replace(setting, costs=costs))
    return InDoubt(opened, total, expected(max(likely, 0.0), at_best))


def _cost(chosen: Chosen, setting: Setting) -> float:
    """What a choice costs by these costs."""
    views = ((chosen.graph.view(chosen.graph.layers[index]), one) for index, one in chosen.choices.items())
    prices = (setting.costs.price(one.kernel, view, one.params, setting.target) for view, one in views)
    return fsum(price.cost or 0.0 for price in prices)


def expected(lost: float, at_best: float) -> float:
    """What another choice saves, on average, by which `lost` is likely to be lost and `at_best` is saved; 0 or more.

    The difference is taken as normally distributed, with half of what is between both as its deviation s. Of all
    differences that are less than 0 the mean is s * h(lost / s), h(z) = phi(z) - z * (1 - Phi(z)), which is
    0.4 * e^(-1.2 z - 0.36 z^2) within two percent up to two deviations.
    """
    deviation = (lost + at_best) / 2
    if deviation <= 0:
        return 0.0
    apart = lost / deviation
    return 0.4 * deviation * exp(-1.2 * apart - 0.36 * apart * apart)


def _signatures(chosen: Chosen) -> Counter[str]:
    """How many layers have each signature, as their kernels see them."""
    views = ((chosen.graph.view(chosen.graph.layers[index]), choice) for index, choice in chosen.choices.items())
    return Counter(signature(choice.kernel.seen(view)) for view, choice in views)


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
