"""How well kernels are chosen: what is chosen for a layer beside the best there is, with every call counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING

from stages.count.call import KernelCall, chosen_calls, possible_calls
from stages.count.search import Count, counted_costs
from stages.tensorize.build import decide, reduced
from stages.tensorize.costs import Call, Costs
from stages.tensorize.forms import with_other_forms
from stages.tensorize.layouts import weighed

if TYPE_CHECKING:
    from stages.ir.graph import Graph
    from stages.tensorize.choices import Chosen
    from stages.tensorize.setting import Setting

TOLERANCE = 0.05


@dataclass(frozen=True)
class Judged:
    """Instructions of what is chosen for a network and of the best, and the calls of both; how many were counted."""

    name: str
    chosen: int
    best: int
    calls: tuple[str, ...]
    best_calls: tuple[str, ...]
    counted: int

    @property
    def behind(self) -> float:
        """By how much the best is missed: 0.05 for five percent."""
        return self.chosen / self.best - 1 if self.best else 0.0


def judge(networks: Sequence[tuple[str, Graph, Setting]], count: Count) -> list[Judged]:
    """All networks, the worst first. Raises what `count` and tensorize raise."""
    judged = []
    everything: dict[Call, KernelCall] = {}
    for _, graph, setting in networks:
        everything |= {call.key: call for call in all_calls(graph, setting)}
    counts: dict[str, dict[str, int]] = {}
    for (layer, variant), instructions in count([everything[key] for key in sorted(everything)]).items():
        counts.setdefault(layer, {})[variant] = instructions
    for name, graph, setting in networks:
        costs = counted_costs([(graph, setting)], count)
        full = counted_costs([(graph, setting)], count, known=counts)
        chosen, best = (decide(graph, replace(setting, costs=one))[0] for one in (costs, full))
        merged = _merged(costs, full)
        totals = [_total(one, setting, merged) for one in (chosen, best)]
        calls = [tuple(call.variant for _, call in chosen_calls(one, setting.target)) for one in (chosen, best)]
        counted = sum(map(len, costs.counts.values()))
        judged.append(Judged(name, totals[0], totals[1], calls[0], calls[1], counted))
    return sorted(judged, key=lambda one: (-one.behind, one.name))


def all_calls(graph: Graph, setting: Setting) -> Iterator[KernelCall]:
    """The calls of a network's layers in all forms and layouts that tensorize weighs."""
    base, _ = reduced(graph, setting)
    for form in (base, with_other_forms(base)):
        for view in weighed(form, setting):
            for call, _ in possible_calls(view, setting):
                yield call


def _merged(*costs: Costs) -> Costs:
    counts: dict[str, dict[str, int]] = {}
    for one in costs:
        for layer, row in one.counts.items():
            counts.setdefault(layer, {}).update(row)
    return Costs(counts)


def _total(chosen: Chosen, setting: Setting, costs: Costs) -> int:
    calls = (call for _, call in chosen_calls(chosen, setting.target))
    return round(fsum(costs.counts.get(call.signature, {}).get(call.variant, call.estimate or 0) for call in calls))
