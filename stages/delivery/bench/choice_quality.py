"""Quality of kernel selection: the selected kernel against the best, all counted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import fsum

from stages.count.call import chosen_calls, possible_calls
from stages.count.search import Count, counted_costs
from stages.ir.graph import Graph
from stages.tensorize.build import decide, reduced
from stages.tensorize.choices import Chosen
from stages.tensorize.costs import Call, Costs, KernelCall
from stages.tensorize.equivalent_layers import with_all_equivalents
from stages.tensorize.layouts import layout_variants
from stages.tensorize.pass_context import PassContext

TOLERANCE = 0.05


@dataclass(frozen=True)
class ChoiceQuality:
    """Instructions of the selection for a network and of the best one, with the calls of both.

    `counted` is the number of kernel calls that the selection counted.
    """

    name: str
    chosen: int
    best: int
    calls: tuple[str, ...]
    best_calls: tuple[str, ...]
    counted: int

    @property
    def behind(self) -> float:
        """Extra instructions relative to the best selection: 0.05 for five percent."""
        return self.chosen / self.best - 1 if self.best else 0.0


def rate_choices(networks: Sequence[tuple[str, Graph, PassContext]], count: Count) -> list[ChoiceQuality]:
    """Return the quality for all networks, the worst first.

    Raises the errors of `count` and of tensorize.
    """
    results = []
    everything: dict[Call, KernelCall] = {}
    for _, graph, setting in networks:
        everything |= {call.key: call for call in all_calls(graph, setting)}
    counts: dict[str, dict[str, int]] = {}
    for (layer, variant), instructions in count([everything[key] for key in sorted(everything)]).items():
        counts.setdefault(layer, {})[variant] = instructions
    for name, graph, setting in networks:
        costs = counted_costs([(graph, setting)], count)
        full = counted_costs([(graph, setting)], count, known=Costs(counts))
        chosen, best = (decide(graph, replace(setting, costs=known))[0] for known in (costs, full))
        merged = _merged(costs, full)
        choices = (chosen, best)
        totals = [_total(choice, setting, merged) for choice in choices]
        calls = [tuple(call.variant for _, call in chosen_calls(choice, setting.target)) for choice in choices]
        counted = sum(map(len, costs.counts.values()))
        results.append(ChoiceQuality(name, totals[0], totals[1], calls[0], calls[1], counted))
    return sorted(results, key=lambda result: (-result.behind, result.name))


def all_calls(graph: Graph, setting: PassContext) -> Iterator[KernelCall]:
    """Yield the kernel calls of a network's layers, in all forms and layouts of tensorize."""
    base, _ = reduced(graph, setting)
    for form in (base, with_all_equivalents(base)):
        for view in layout_variants(form, setting):
            for call, _ in possible_calls(view, setting):
                yield call


def _merged(*costs: Costs) -> Costs:
    counts: dict[str, dict[str, int]] = {}
    for table in costs:
        for layer, row in table.counts.items():
            counts.setdefault(layer, {}).update(row)
    return Costs(counts)


def _total(chosen: Chosen, setting: PassContext, costs: Costs) -> int:
    calls = (call for _, call in chosen_calls(chosen, setting.target))
    return round(fsum(costs.counts.get(call.signature, {}).get(call.variant, call.estimate or 0) for call in calls))
