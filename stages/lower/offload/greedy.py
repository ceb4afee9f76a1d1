"""A solution that always exists: each layer alone, then tensors into L1 one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stages.lower.offload.problem import Solution

if TYPE_CHECKING:
    from stages.lower.offload.options import Option
    from stages.lower.offload.problem import Problem, Task


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
