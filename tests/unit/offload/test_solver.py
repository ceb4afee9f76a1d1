"""Solutions of small problems, against all that there are."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest

from stages.arena.planner import Buffer
from stages.offload.greedy import apart, greedy
from stages.offload.options import Option
from stages.offload.problem import Problem, Solution, Task
from stages.offload.solver import solved


@dataclass(frozen=True)
class Sized:
    """Stands for a way: all that a problem asks of it."""

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
                way: object = Sized(size, size // 32 * 16)
                found += [
                    Option(way, cycles, ahead=False),  # type: ignore[arg-type]
                    Option(way, cycles - chance.randrange(90), ahead=True),  # type: ignore[arg-type]
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
    best = solved(problem, start)
    assert problem.holds(best)
    assert best.cycles == every(problem)
    assert solved(problem, start) == best


def test_a_network_without_offloaded_layers_has_nothing_to_decide() -> None:
    nothing = Problem((), (), 100)
    assert solved(nothing, greedy(nothing)) == Solution()
