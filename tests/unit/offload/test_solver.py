"""Solutions of small problems, against all that there are."""

import itertools
import random
from dataclasses import dataclass

import pytest

from stages.lower.arena.planner import Buffer
from stages.lower.offload.options import Option
from stages.lower.offload.problem import Problem, Solution, Task
from stages.lower.offload.search import Planned, apart, greedy, search
from stages.lower.offload.solver import solve


@dataclass(frozen=True)
class Sized:
    """Stands for a candidate: all that a problem asks of it."""

    bytes: int
    ahead_bytes: int


def drawn(seed: int) -> Problem:
    """A chain of four layers, the first of which has two inputs."""
    chance = random.Random(seed)
    names = ["a", "b", "c", "d", "e", "f"]
    lives = {"a": (0, 0), "b": (0, 3), "c": (0, 1), "d": (1, 2), "e": (2, 3), "f": (3, 3)}
    tensors = tuple(Buffer(name, chance.randrange(1, 40) * 16, *lives[name]) for name in names)
    homes = [("a", "b", "c"), ("c", "d"), ("d", "e"), ("b", "e", "f")]
    tasks = []
    for index, own in enumerate(homes):
        options = {}
        for residence in itertools.product((True, False), repeat=len(own)):
            found = []
            for _ in range(2):
                size = chance.randrange(1, 20) * 16
                cycles = chance.randrange(100, 400) + 300 * residence.count(False)
                candidate: object = Sized(size, size // 32 * 16)
                found += [
                    Option(candidate, cycles, ahead=False),  # type: ignore[arg-type]
                    Option(candidate, cycles - chance.randrange(90), ahead=True),  # type: ignore[arg-type]
                ]
            options[residence] = tuple(sorted(found, key=lambda option: option.cycles))
        tasks.append(Task(index, own, index - 1 if index else None, options))
    return Problem(tuple(tasks), tensors, 640)


def every(problem: Problem) -> int:
    """The fewest cycles of all solutions that hold."""
    best = apart(problem).cycles
    for count in range(len(problem.tensors) + 1):
        for names in itertools.combinations([tensor.name for tensor in problem.tensors], count):
            resident = frozenset(names)
            able = [task.able(resident) for task in problem.tasks]
            for options in itertools.product(*able):
                made = Solution(resident, dict(enumerate(options)))
                if made.cycles < best and problem.holds(made):
                    best = made.cycles
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_best_is_found_and_the_greedy_one_holds(seed: int) -> None:
    problem = drawn(seed)
    start = greedy(problem)
    assert problem.holds(start)
    assert start.cycles <= apart(problem).cycles
    found = solve(problem, gap=0)
    assert found.solution is not None and problem.holds(found.solution)
    assert found.status == "optimum" and found.bound == found.solution.cycles == every(problem)
    assert solve(problem, gap=0) == found


def test_what_stopped_the_search_is_reported() -> None:
    many = hard()
    best = solve(many, gap=0)
    assert best.solution is not None and best.status == "optimum" and best.nodes > 1
    stopped, near = solve(many, nodes=1, gap=0), solve(many, gap=0.5)
    for found, status in ((stopped, "limit"), (near, "gap")):
        assert found.status == status and found.solution is not None and found.bound is not None
        assert found.bound <= best.solution.cycles <= found.solution.cycles
    assert solve(many, nodes=0).status == "none"


def hard() -> Problem:
    """Sixty layers, and tensors that live at the same time as many others."""
    chance, count = random.Random(0), 60
    lives = [sorted((chance.randrange(count), chance.randrange(count))) for _ in range(count)]
    tensors = tuple(Buffer(f"t{n}", chance.randrange(10, 99) * 16, *lives[n]) for n in range(count))
    candidate: object = Sized(0, 0)
    tasks = []
    for number, tensor in enumerate(tensors):
        cycles = {(True,): 100, (False,): 100 + chance.randrange(50, 99)}
        options = {there: (Option(candidate, each, ahead=False),) for there, each in cycles.items()}  # type: ignore[arg-type]
        tasks.append(Task(number, (tensor.name,), None, options))
    return Problem(tuple(tasks), tensors, 6000)


def timed(problem: Problem, cycles: dict[str, int], sizes: dict[str, int]) -> tuple[str, dict[str, int], int]:
    """Which solution is taken where the network takes so many cycles with each, and so many bytes."""
    of_solver = solve(problem).solution
    nowhere = apart(problem)

    def make(solution: Solution) -> Planned:
        name = "solver" if solution == of_solver else "apart" if solution == nowhere else "greedy"
        return Planned(solution, {}, sizes[name], cycles[name])

    made, told = search(problem, make)
    assert told.cycles == made.solution.cycles
    return told.taken, told.candidates, told.memory


def test_the_solution_with_which_the_network_is_shorter_is_taken_if_it_fits() -> None:
    seed = next(seed for seed in range(99) if greedy(drawn(seed)).cycles > every(drawn(seed)))
    problem, sizes = drawn(seed), {"solver": 640, "greedy": 640, "apart": 640}
    cycles = {"solver": 700, "greedy": 690, "apart": 999}
    assert timed(problem, cycles, sizes) == ("greedy", {"solver": 700, "greedy": 690}, 640)
    assert timed(problem, cycles | {"greedy": 700}, sizes)[0] == "solver"
    assert timed(problem, cycles, sizes | {"greedy": 641}) == ("solver", {"solver": 700}, 640)
    assert timed(problem, cycles | {"greedy": 800}, sizes | {"solver": 641}) == ("greedy", {"greedy": 800}, 640)
    taken, candidates, memory = timed(problem, cycles, {"solver": 650, "greedy": 650, "apart": 99})
    assert (taken, candidates, memory < 640) == ("apart", {"apart": 999}, True)
