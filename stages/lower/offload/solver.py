"""The best solution by integer programming (HiGHS, through scipy).

minimize    sum of cycles of the chosen options
subject to  each layer has one option
            an option requires that its layer's tensors lie in L1 as it assumes
            at each layer the contents of L1 fit
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Literal

from stages.lower.offload.machine import aligned
from stages.lower.offload.options import Option
from stages.lower.offload.problem import Problem, Solution, Task
from stages.support.lazy import np

NODES = 4000
"""Maximum nodes of the search tree. Unlike a time limit it is the same on every machine."""
GAP = 1e-3
"""Relative distance to the optimum at which the solver stops."""

_ROUNDING = 1e-3  # tolerance of the solver's bound, a float; cycles are integers

Row = tuple[dict[int, float], float, float]
"""Coefficients by variable, and the bounds of their sum."""


@dataclass(frozen=True)
class Solved:
    """The solver's result. `solution` is None if the limit was reached without one.

    `bound` is a lower bound of the cycles. `status` and `nodes` as in stages.lower.offload.program.Search.
    """

    solution: Solution | None
    status: Literal["optimum", "gap", "limit", "none"]
    bound: int | None = None
    nodes: int = 0


def solve(problem: Problem, nodes: int = NODES, gap: float = GAP) -> Solved:
    """Return the best solution within `nodes` nodes, or within `gap` of the optimum."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    model = _Model(problem)
    if not model.choices:
        return Solved(Solution(), "optimum", 0)
    rows = list(model.rows())
    entries = [(number, variable, value) for number, (row, _, _) in enumerate(rows) for variable, value in row.items()]
    lines, columns, values = (list(column) for column in zip(*entries, strict=True))
    matrix = csr_array((values, (lines, columns)), shape=(len(rows), model.count))
    constraint = LinearConstraint(matrix, [low for _, low, _ in rows], [high for _, _, high in rows])
    result = milp(
        np.array(model.cycles(), float),
        integrality=np.ones(model.count),
        bounds=Bounds(0, 1),
        constraints=constraint,
        options={"node_limit": nodes, "mip_rel_gap": gap},
    )
    if result.x is None:
        return Solved(None, "none")
    solution = model.solution([value > 0.5 for value in result.x])
    if not problem.holds(solution):
        raise RuntimeError("internal error: a solution of the integer program exceeds L1")
    bound = ceil(result.mip_dual_bound - _ROUNDING)
    if solution.cycles <= bound:
        status: Literal["optimum", "gap", "limit"] = "optimum"
    else:
        status = "gap" if result.success else "limit"
    return Solved(solution, status, min(bound, solution.cycles), int(result.mip_node_count))


class _Model:
    """The integer program. Variables are tensors, then the options of each task."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._tensors = {tensor.name: number for number, tensor in enumerate(problem.tensors)}
        self.choices: list[tuple[Task, tuple[bool, ...], Option]] = [
            (task, residence, option)
            for task in problem.tasks
            for residence, options in task.options.items()
            for option in options
            if not option.ahead or task.during is not None
        ]
        self.count = len(self._tensors) + len(self.choices)

    def cycles(self) -> list[int]:
        """Return the objective's coefficients: cycles of each option."""
        return [0] * len(self._tensors) + [option.cycles for _, _, option in self.choices]

    def rows(self) -> Iterator[Row]:
        """Yield the constraints."""
        first = len(self._tensors)
        for task in self._problem.tasks:
            mine = {first + n: 1.0 for n, (other, _, _) in enumerate(self.choices) if other is task}
            yield mine, 1, 1
            for position, home in enumerate(task.homes):
                # The chosen option has this tensor in L1 if and only if it lies there.
                with_tensor = {
                    first + n: 1.0
                    for n, (other, residence, _) in enumerate(self.choices)
                    if other is task and residence[position]
                }
                yield {**with_tensor, self._tensors[home]: -1.0}, 0, 0
        yield from self._capacities()

    def _capacities(self) -> Iterator[Row]:
        first = len(self._tensors)
        for now in self._problem.moments:
            row: dict[int, float] = {}
            for tensor in self._problem.tensors:
                if tensor.first <= now <= tensor.last:
                    row[self._tensors[tensor.name]] = aligned(tensor.bytes)
            for number, (task, _, option) in enumerate(self.choices):
                if task.index == now:
                    row[first + number] = option.bytes
                elif option.ahead and task.during is not None and task.during <= now < task.index:
                    row[first + number] = option.ahead_bytes
            if row:
                yield row, 0, self._problem.capacity

    def solution(self, chosen: list[bool]) -> Solution:
        """Return the solution for the values of all variables."""
        first = len(self._tensors)
        resident = frozenset(name for name, number in self._tensors.items() if chosen[number])
        options = {
            task.index: option for number, (task, _, option) in enumerate(self.choices) if chosen[first + number]
        }
        return Solution(resident, options)
