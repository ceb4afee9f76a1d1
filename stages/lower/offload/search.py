"""Searches a candidate for each layer and a place for each tensor: by the solver, beside a greedy solution.

What the solver minimizes is a sum over layers, each by itself. What the network takes is known when programs are there:
transfers for one layer wait for those of others. So both solutions are timed, and the shorter one is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from stages.lower.offload.greedy import apart, greedy
from stages.lower.offload.program import Search
from stages.lower.offload.solver import GAP, NODES, Solved, solved

if TYPE_CHECKING:
    from stages.lower.offload.problem import Problem, Solution
    from stages.lower.offload.program import Program

_TIGHTER = 4
"""How often less of L1 is planned with, where what was planned leaves gaps; then nothing stays there."""


@dataclass(frozen=True)
class Made:
    """A solution as programs, which need so many bytes of L1, gaps included, and take the network so many cycles."""

    solution: Solution
    programs: Mapping[int, Program]
    bytes: int
    cycles: int


def search(problem: Problem, make: Callable[[Solution], Made], nodes: int = NODES) -> tuple[Made, Search]:
    """The shortest that fits, and how it was found."""
    whole = problem.capacity
    for _ in range(_TIGHTER):
        found = solved(problem, nodes)
        candidates = {"greedy": make(greedy(problem))}
        if found.solution is not None:
            candidates = {"solver": make(found.solution), **candidates}
        fitting = {name: made for name, made in candidates.items() if made.bytes <= whole}
        if fitting:
            taken = min(fitting, key=lambda name: fitting[name].cycles)
            return fitting[taken], _told(taken, fitting, found, problem, nodes)
        missing = min(made.bytes for made in candidates.values()) - whole
        problem = replace(problem, capacity=problem.capacity - missing)
    made = make(apart(problem))
    return made, _told("apart", {"apart": made}, found, problem, nodes)


def _told(taken: str, fitting: Mapping[str, Made], found: Solved, problem: Problem, nodes: int) -> Search:
    which: Mapping[str, Literal["solver", "greedy", "apart"]] = {
        "solver": "solver",
        "greedy": "greedy",
        "apart": "apart",
    }
    return Search(
        status=found.status,
        taken=which[taken],
        cycles=fitting[taken].solution.cycles,
        bound=found.bound,
        gap=GAP,
        nodes=found.nodes,
        node_limit=nodes,
        memory=problem.capacity,
        candidates={name: made.cycles for name, made in fitting.items()},
    )
