"""The least sum of costs over variables with few choices each, exactly (bucket elimination).

One variable after the other is minimized out of the tables that it is in, those with small tables first. Networks
are nearly chains, so that tables stay small.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

LARGEST = 1 << 16
"""Entries of a table; where one would be larger, a variable of it keeps its first choice."""

Variable = TypeVar("Variable", bound=Hashable)


@dataclass(frozen=True, eq=False)
class Costs(Generic[Variable]):
    """A cost for each combination of choices: an axis of `table` for each of the variables."""

    variables: tuple[Variable, ...]
    table: NDArray[np.float64]


def cheapest(
    sizes: Mapping[Variable, int], costs: Sequence[Costs[Variable]], largest: int = LARGEST
) -> dict[Variable, int]:
    """The number of each variable's choice, of so many, with the least sum of all costs.

    Among equals the first choices; but for variables that keep theirs because of `largest`, no other sum is less.
    """
    tables: dict[Variable, list[Costs[Variable]]] = {variable: [] for variable in sizes}
    for one in costs:
        _add(tables, one)
    eliminated: list[Costs[Variable]] = []  # each over the variable that it eliminates, and those after it
    found: dict[Variable, int] = {}
    while tables:
        scopes = {variable: _scope(variable, own) for variable, own in tables.items()}
        entries = {variable: prod(sizes[other] for other in scope) for variable, scope in scopes.items()}
        variable = min(entries, key=entries.__getitem__)
        if entries[variable] > largest:
            variable = max(tables, key=lambda each: len(tables[each]))
            found[variable] = 0
            rest = [_with_first(one, variable) for one in _take(tables, variable)]
        else:
            joined = _sum(scopes[variable], sizes, _take(tables, variable))
            eliminated.append(joined)
            rest = [Costs(joined.variables[1:], np.asarray(joined.table.min(axis=0)))]
        for one in rest:
            _add(tables, one)
    for joined in reversed(eliminated):
        variable, *others = joined.variables
        at: Any = (slice(None), *(found[other] for other in others))
        found[variable] = int(joined.table[at].argmin())
    return found


def _add(tables: dict[Variable, list[Costs[Variable]]], one: Costs[Variable]) -> None:
    for variable in one.variables:
        tables[variable].append(one)


def _take(tables: dict[Variable, list[Costs[Variable]]], variable: Variable) -> list[Costs[Variable]]:
    """The variable's tables, which are no one's any more; nor is the variable there."""
    taken = tables.pop(variable)
    for one in taken:
        for other in one.variables:
            if other != variable:
                tables[other].remove(one)
    return taken


def _scope(variable: Variable, own: Sequence[Costs[Variable]]) -> tuple[Variable, ...]:
    """The variable, and all that share a table with it."""
    return tuple(dict.fromkeys((variable, *(other for one in own for other in one.variables))))


def _sum(
    scope: tuple[Variable, ...], sizes: Mapping[Variable, int], tables: Sequence[Costs[Variable]]
) -> Costs[Variable]:
    total = np.zeros([sizes[variable] for variable in scope])
    for one in tables:
        order = sorted(range(len(one.variables)), key=lambda axis: scope.index(one.variables[axis]))
        there = [variable in one.variables for variable in scope]
        extents = iter([one.table.shape[axis] for axis in order])
        total = total + one.table.transpose(order).reshape([next(extents) if is_there else 1 for is_there in there])
    return Costs(scope, total)


def _with_first(one: Costs[Variable], variable: Variable) -> Costs[Variable]:
    """The costs with the variable's first choice."""
    axis = one.variables.index(variable)
    return Costs(one.variables[:axis] + one.variables[axis + 1 :], np.asarray(one.table.take(0, axis=axis)))
