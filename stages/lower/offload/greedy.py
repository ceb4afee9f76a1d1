"""A solution that is always there: every layer by itself, then one thing after the other into L1 while it has room."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stages.lower.offload.problem import Solution

if TYPE_CHECKING:
    from stages.lower.offload.options import Option
    from stages.lower.offload.problem import Problem, Task


def apart(problem: Problem) -> Solution:
    """Nothing lies in L1 from one layer to the next, nothing comes ahead: the fastest tiles of each layer."""
    nowhere: frozenset[str] = frozenset()
    return Solution(nowhere, {task.index: _first(task, nowhere) for task in problem.tasks})


def greedy(problem: Problem) -> Solution:
    """`apart`, improved: tensors that save most for the bytes that they take, then constants ahead of their layers."""
    best = apart(problem)
    waiting = {tensor.name for tensor in problem.tensors}
    while waiting:
        tried = [(one, made) for one in sorted(waiting) if (made := _with(problem, best, one)) is not None]
        sizes = {tensor.name: tensor.bytes for tensor in problem.tensors}
        better = [(best.cycles - made.cycles, -sizes[name], name, made) for name, made in tried]
        better = [one for one in better if one[0] > 0]
        if not better:
            break
        _, _, name, best = max(better, key=lambda one: (one[0] / max(-one[1], 1), one[2]))
        waiting.remove(name)
    for task in problem.tasks:
        for option in task.able(best.resident):
            made = replace(best, chosen={**best.chosen, task.index: option})
            if made.cycles < best.cycles and problem.holds(made):
                best = made
    return best


def _first(task: Task, resident: frozenset[str]) -> Option:
    return next(option for option in task.able(resident) if not option.ahead)


def _with(problem: Problem, solution: Solution, home: str) -> Solution | None:
    """The solution with a tensor in L1 and its layers cut as there is room, None where there is none."""
    resident = solution.resident | {home}
    made = replace(solution, resident=resident)
    for task in problem.tasks:
        if home not in task.homes:
            continue
        used = problem.load(replace(made, chosen={**made.chosen, task.index: solution.chosen[task.index]}))
        room = problem.capacity - used.get(task.index, 0) + solution.chosen[task.index].bytes
        able = [option for option in task.able(resident) if not option.ahead and option.bytes <= room]
        if not able:
            return None
        made = replace(made, chosen={**made.chosen, task.index: able[0]})
    return made if problem.holds(made) else None
