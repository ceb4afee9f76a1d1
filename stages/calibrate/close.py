"""Layers between whose kernels there is least to choose, as far as is known: what to measure so that choices are right.

A choice is wrong where two kernels are nearer to each other than their models are to the truth. Models are the further
off the further a layer is from those that were measured, so of many drawn layers those count as close where

    log(rival / chosen) / (near + apart * d)        d: distance from what was measured (stages.tensorize.nearby)

is least. What is measured there moves the border between two kernels to its place, and the next draw finds others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, Any

from stages.base import StageError, no_progress
from stages.calibrate.cases import cases
from stages.calibrate.drawn import described
from stages.calibrate.judge import TOLERANCE
from stages.calibrate.side_by_side import Network
from stages.layout.rules import LayoutConfig
from stages.models.spec import OpModel
from stages.tensorize import TensorizeConfig

if TYPE_CHECKING:
    from stages.calibrate.cases import Case
    from stages.calibrate.table import Table
    from stages.graph import Graph
    from stages.targets.spec import Target
    from stages.tensorize.costs import CostTable

# Of ten choices between two kernels, one is off by more than about this: of 1,500 that were measured.
_NEAR, _APART = 0.03, 0.03
_AS_GOOD = 0.02  # what is nearer than that is no wrong choice
_ALIKE = 3  # layers of one kind with the same two kernels


def close(
    specs: Iterable[OpModel],
    target: Target,
    costs: CostTable,
    count: int,
    *,
    progress: Callable[..., None] = no_progress,
) -> list[OpModel]:
    """The `count` layers of which it is least certain which kernel is best, no more than a few of one kind."""
    found: list[tuple[float, tuple[str, str], int, OpModel]] = []
    for spec in specs:
        graph = graph_of(spec)
        doubt = None if graph is None else _doubt(cases([graph], target), target, costs)
        if doubt is not None:
            found.append((*doubt, len(found), spec))
            progress(f"looking at {len(found)} layers")
    taken: list[OpModel] = []
    alike: Counter[tuple[str, str]] = Counter()
    for _, pair, _, spec in sorted(found, key=lambda one: (one[0], one[2])):
        if len(taken) < count and alike[pair] < _ALIKE:
            alike[pair] += 1
            taken.append(spec)
    return taken


def wrong_of(offered: Sequence[Case], table: Table, target: Target, costs: CostTable) -> int:
    """Of how many layers that `table` has now these costs choose a kernel over 5 % behind the best."""
    rows: dict[str, list[tuple[float, int]]] = {}
    for case in offered:
        price = costs.price(case.kernel, case.view, case.params, target)
        took = table.layers[case.signature][case.variant][0]
        rows.setdefault(case.signature, []).append((float("inf") if price.cost is None else price.cost, took))
    pairs = ((min(row, key=lambda one: one[0])[1], min(took for _, took in row)) for row in rows.values())
    return sum(taken > (1 + TOLERANCE) * best for taken, best in pairs)


def graph_of(spec: OpModel) -> Graph | None:
    """The layer, in rows; None for options that contradict each other."""
    try:
        return Network.of(described(spec), spec, LayoutConfig(), TensorizeConfig()).graph
    except StageError:
        return None


def graphs_of(given: Iterable[Mapping[str, Any]]) -> Iterator[Graph]:
    """The layers of a table's `close`."""
    made = (graph_of(OpModel.model_validate(options)) for options in given)
    yield from (graph for graph in made if graph is not None)


def _doubt(offered: Iterable[Case], target: Target, costs: CostTable) -> tuple[float, tuple[str, str]] | None:
    """How small the difference between what is chosen and another is, and the two; None where nothing is chosen."""
    rows: dict[str, list[tuple[float, bool, Case]]] = {}
    for case in offered:
        price = costs.price(case.kernel, case.view, case.params, target)
        if price.cost:
            rows.setdefault(case.signature, []).append((price.cost, price.source == "measured", case))
    doubts = []
    for row in rows.values():
        row.sort(key=lambda one: one[0])
        (least, known, taken), *others = row
        for cost, measured, rival in others:
            if known and measured:
                continue
            nearby, pair = costs.nearby, (taken.variant, rival.variant)
            apart = 0.0 if nearby is None else max(nearby.distance(name, taken.signature) for name in pair)
            doubts.append(((log(cost / least) + _AS_GOOD) / (_NEAR + _APART * apart), pair))
    return min(doubts, default=None)
