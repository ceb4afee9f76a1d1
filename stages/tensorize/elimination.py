"""Exact minimum of a sum of costs over variables with few choices (bucket elimination).

Variables are minimized out one after the other, those with small tables first. Networks are nearly chains, so the
tables stay small.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

LARGEST = 1 << 16
"""Maximum entries of a table. If one would be larger, one of its variables keeps its first choice."""

Variable = TypeVar("Variable", bound=Hashable)


@dataclass(frozen=True, eq=False)
class Costs(Generic[Variable]):
    """A cost for each combination of choices: `table` has one axis for each variable."""

    variables: tuple[Variable, ...]
    table: NDArray[np.float64]


def cheapest(
    sizes: Mapping[Variable, int], costs: Sequence[Costs[Variable]], largest: int = LARGEST
) -> dict[Variable, int]:
    """Return the choice of each variable, as a number, that minimizes the sum of all costs.

    sizes    number of choices of each variable
    largest  maximum entries of a table; above it a variable keeps its first choice, and the result may not be minimal

    Ties go to the first choices.
    """
    tables: dict[Variable, list[Costs[Variable]]] = {variable: [] for variable in sizes}
    for cost in costs:
        _add(tables, cost)
    eliminated: list[Costs[Variable]] = []  # each over the variable that it eliminates, and those after it
    numbers: dict[Variable, int] = {}
    while tables:
        scopes = {variable: _scope(variable, costs_of) for variable, costs_of in tables.items()}
        entries = {variable: prod(sizes[other] for other in scope) for variable, scope in scopes.items()}
        variable = min(entries, key=entries.__getitem__)
        if entries[variable] > largest:
            variable = max(tables, key=lambda name: len(tables[name]))
            numbers[variable] = 0
            rest = [_with_first(cost, variable) for cost in _take(tables, variable)]
        else:
            joined = _sum(scopes[variable], sizes, _take(tables, variable))
            eliminated.append(joined)
            rest = [Costs(joined.variables[1:], np.asarray(joined.table.min(axis=0)))]
        for cost in rest:
            _add(tables, cost)
    for joined in reversed(eliminated):
        variable, *others = joined.variables
        at: Any = (slice(None), *(numbers[other] for other in others))
        numbers[variable] = int(joined.table[at].argmin())
    return numbers


def _add(tables: dict[Variable, list[Costs[Variable]]], cost: Costs[Variable]) -> None:
    for variable in cost.variables:
        tables[variable].append(cost)


def _take(tables: dict[Variable, list[Costs[Variable]]], variable: Variable) -> list[Costs[Variable]]:
    """Remove the variable with its tables from `tables`, and return these tables."""
    removed = tables.pop(variable)
    for cost in removed:
        for other in cost.variables:
            if other != variable:
                tables[other].remove(cost)
    return removed


def _scope(variable: Variable, costs: Sequence[Costs[Variable]]) -> tuple[Variable, ...]:
    """Return the variable and all variables that share a table with it."""
    return tuple(dict.fromkeys((variable, *(other for cost in costs for other in cost.variables))))


def _sum(
    scope: tuple[Variable, ...], sizes: Mapping[Variable, int], tables: Sequence[Costs[Variable]]
) -> Costs[Variable]:
    total = np.zeros([sizes[variable] for variable in scope])
    for cost in tables:
        order = sorted(range(len(cost.variables)), key=lambda axis: scope.index(cost.variables[axis]))
        present = [variable in cost.variables for variable in scope]
        extents = iter([cost.table.shape[axis] for axis in order])
        total = total + cost.table.transpose(order).reshape(
            [next(extents) if is_present else 1 for is_present in present]
        )
    return Costs(scope, total)


def _with_first(cost: Costs[Variable], variable: Variable) -> Costs[Variable]:
    """Return the costs with the variable fixed to its first choice."""
    axis = cost.variables.index(variable)
    return Costs(cost.variables[:axis] + cost.variables[axis + 1 :], np.asarray(cost.table.take(0, axis=axis)))
