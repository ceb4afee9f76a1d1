"""Calls of layers, and costs as a test says them."""

from collections.abc import Callable, Iterable

from stages.backends.targets.spec import Target
from stages.count.call import KernelCall
from stages.delivery.bench.choice_quality import all_calls
from stages.delivery.bench.networks import setting_of
from stages.ir.graph import Graph
from stages.ir.models.operators import build
from stages.ir.models.spec import OpModel
from stages.tensorize import TensorizeConfig
from stages.tensorize.costs import Costs
from tests.support.integer import integer_graph


def layer_graph(**options: object) -> Graph:
    """The integer graph of one layer."""
    return integer_graph(build(OpModel.model_validate(options)))


def calls_of(graph: Graph, target: Target) -> list[KernelCall]:
    """All calls that can compute a network's layers, each once."""
    found = {call.key: call for call in all_calls(graph, setting_of(target, TensorizeConfig()))}
    return list(found.values())


def costs_of(calls: Iterable[KernelCall], count: Callable[[KernelCall], int]) -> Costs:
    """Counts of these calls as `count` says."""
    counts: dict[str, dict[str, int]] = {}
    for call in calls:
        counts.setdefault(call.signature, {})[call.variant] = count(call)
    return Costs(counts, lower_bounds=True)
