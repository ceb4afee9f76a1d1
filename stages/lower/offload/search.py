"""Search a tiling candidate for each layer and a place for each tensor.

The solver minimizes a sum over layers, each by itself. The network's cycles are known only with programs, because
transfers of one layer wait for those of others. So both solutions are timed, and the faster one is taken.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from stages.lower.offload.options import Option
from stages.lower.offload.problem import Problem, Solution, Task
from stages.lower.offload.program import Program, Search
from stages.lower.offload.solver import GAP, NODES, Solved, solve

_TIGHTER = 4
"""Attempts with less of L1, if gaps between buffers exceed it. Then no tensor stays there."""


@dataclass(frozen=True)
class Planned:
    """A solution as programs, with its bytes of L1 including gaps, and the network's cycles."""

    solution: Solution
    programs: Mapping[int, Program]
    bytes: int
    cycles: int


def search(problem: Problem, make: Callable[[Solution], Planned], nodes: int = NODES) -> tuple[Planned, Search]:
    """Return the fastest solution that fits, and a report of the search."""
    capacity = problem.capacity
    for _ in range(_TIGHTER):
        solver_result = solve(problem, nodes)
        candidates = {"greedy": make(greedy(problem))}
        if solver_result.solution is not None:
            candidates = {"solver": make(solver_result.solution), **candidates}
        fitting = {name: planned for name, planned in candidates.items() if planned.bytes <= capacity}
        if fitting:
            best = min(fitting, key=lambda name: fitting[name].cycles)
            return fitting[best], _report(best, fitting, solver_result, problem, nodes)
        missing = min(planned.bytes for planned in candidates.values()) - capacity
        problem = replace(problem, capacity=problem.capacity - missing)
    planned = make(apart(problem))
    return planned, _report("apart", {"apart": planned}, solver_result, problem, nodes)


def _report(best: str, fitting: Mapping[str, Planned], solver_result: Solved, problem: Problem, nodes: int) -> Search:
    which: Mapping[str, Literal["solver", "greedy", "apart"]] = {
        "solver": "solver",
        "greedy": "greedy",
        "apart": "apart",
    }
    return Search(
        status=solver_result.status,
        taken=which[best],
        cycles=fitting[best].solution.cycles,
        bound=solver_result.bound,
        gap=GAP,
        nodes=solver_result.nodes,
        node_limit=nodes,
        memory=problem.capacity,
        candidates={name: planned.cycles for name, planned in fitting.items()},
    )


# A solution that always exists: each layer alone, then tensors into L1 one by one.


def apart(problem: Problem) -> Solution:
    """Return the solution without residency and early transfers, with the fastest tiles."""
    nowhere: frozenset[str] = frozenset()
    return Solution(nowhere, {task.index: _first(task, nowhere) for task in problem.tasks})


def greedy(problem: Problem) -> Solution:
    """Return `apart`, improved: first tensors by cycles saved per byte, then early constants."""
    best = apart(problem)
    waiting = {tensor.name for tensor in problem.tensors}
    while waiting:
        tried = [(name, solution) for name in sorted(waiting) if (solution := _with(problem, best, name)) is not None]
        sizes = {tensor.name: tensor.bytes for tensor in problem.tensors}
        gains = [(best.cycles - solution.cycles, -sizes[name], name, solution) for name, solution in tried]
        better = [gain for gain in gains if gain[0] > 0]
        if not better:
            break
        _, _, name, best = max(better, key=lambda gain: (gain[0] / max(-gain[1], 1), gain[2]))
        waiting.remove(name)
    for task in problem.tasks:
        for option in task.able(best.resident):
            changed = replace(best, chosen={**best.chosen, task.index: option})
            if changed.cycles < best.cycles and problem.holds(changed):
                best = changed
    return best


def _first(task: Task, resident: frozenset[str]) -> Option:
    return next(option for option in task.able(resident) if not option.ahead)


def _with(problem: Problem, solution: Solution, home: str) -> Solution | None:
    """Return the solution with a tensor in L1 and tiles beside it, None if nothing fits."""
    resident = solution.resident | {home}
    changed = replace(solution, resident=resident)
    for task in problem.tasks:
        if home not in task.homes:
            continue
        load = problem.load(replace(changed, chosen={**changed.chosen, task.index: solution.chosen[task.index]}))
        free_bytes = problem.capacity - load.get(task.index, 0) + solution.chosen[task.index].bytes
        able = [option for option in task.able(resident) if not option.ahead and option.bytes <= free_bytes]
        if not able:
            return None
        changed = replace(changed, chosen={**changed.chosen, task.index: able[0]})
    return changed if problem.holds(changed) else None
