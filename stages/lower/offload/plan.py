"""The network on the machine: tensors in L1, a program for each offloaded layer, and the time that all of it takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.lower.arena.liveness import liveness
from stages.lower.arena.planner import plan as plan_arena
from stages.lower.offload.machine import ALIGNMENT
from stages.lower.offload.problem import Problem, Task
from stages.lower.offload.residence import buffers_in_l1
from stages.lower.offload.schedule import constants_of, gathers, program
from stages.lower.offload.search import Made, search
from stages.lower.offload.timeline import Step, network

if TYPE_CHECKING:
    import numpy as np

    from stages.ir.graph import Graph
    from stages.lower.arena import Liveness
    from stages.lower.offload.kernel import OffloadKernel
    from stages.lower.offload.problem import Solution
    from stages.lower.offload.program import Program, Search, Stretch, Times


@dataclass(frozen=True)
class Offload:
    """What the pass decided; all by layer's index.

    resident   buffers of tensors that lie in L1, by the names of `stages.lower.arena.liveness`
    constants  as transfers take them, by key: `constants` is a block for each tile of channels, one behind the other;
               `padding` is what windows have beyond an image that transfers gather them from
    times      of all layers, predicted
    search     how this was found, None where nothing is offloaded
    """

    programs: Mapping[int, Program] = field(default_factory=dict)
    constants: Mapping[int, Mapping[str, np.ndarray]] = field(default_factory=dict)
    resident: tuple[str, ...] = ()
    times: Mapping[int, Times] = field(default_factory=dict)
    timeline: tuple[Stretch, ...] = ()
    search: Search | None = None


@dataclass(frozen=True)
class Network:
    """A graph whose layers have kernels.

    offloaded     indices of layers that the kernel's engine computes
    instructions  of the core for the others; those without run nothing
    overlaid      layers that may write their output over an input
    """

    graph: Graph
    offloaded: Collection[int]
    instructions: Mapping[int, float]
    overlaid: frozenset[int]


def plan(given: Network, kernel: OffloadKernel) -> Offload:
    """Programs that fit into L1 together."""
    graph, machine = given.graph, kernel.machine
    lives = liveness(graph, may_overlay=given.overlaid)
    running = [
        layer.index for layer in graph.layers if layer.index in given.offloaded or layer.index in given.instructions
    ]
    problem = _problem(given, kernel, lives, running)

    def timed(programs: Mapping[int, Program]) -> tuple[dict[int, Times], tuple[Stretch, ...]]:
        steps = [Step(index, programs.get(index), given.instructions.get(index, 0.0)) for index in running]
        return network(steps, machine)

    def make(solution: Solution) -> Made:
        programs = _programs(solution, problem, given, kernel)
        buffers = buffers_in_l1(graph, given.overlaid, solution.resident, programs)
        times, _ = timed(programs)
        return Made(solution, programs, plan_arena(buffers, ALIGNMENT).total, sum(one.cycles for one in times.values()))

    made, told = search(problem, make)
    times, timeline = timed(made.programs)
    constants = {
        task.index: constants_of(
            graph.view(graph.layers[task.index]), made.solution.chosen[task.index].candidate, machine
        )
        for task in problem.tasks
    }
    resident = tuple(sorted(made.solution.resident))
    return Offload(made.programs, constants, resident, times, timeline, told if problem.tasks else None)


def _problem(given: Network, kernel: OffloadKernel, lives: Liveness, running: Sequence[int]) -> Problem:
    tasks, used = [], set()
    before = dict(zip(running[1:], running, strict=False))
    for layer in given.graph.layers:
        if layer.index not in given.offloaded:
            continue
        homes = tuple(lives.home[name] for name in (*layer.inputs, *layer.outputs))
        used |= set(homes)
        options = kernel.options(given.graph.view(layer))
        tasks.append(Task(layer.index, homes, _during(given, before, layer.index, kernel), options))
    tensors = tuple(buffer for buffer in lives.buffers if buffer.name in used)
    return Problem(tuple(tasks), tensors, kernel.machine.bytes)


def _during(given: Network, before: Mapping[int, int], index: int, kernel: OffloadKernel) -> int | None:
    """The layer that runs before, while which constants can come; not one that itself waits for transfers of inputs."""
    found = before.get(index)
    while found is not None and found in given.offloaded and found in before:
        if not gathers(given.graph.view(given.graph.layers[found]), kernel.machine.accelerator):
            break
        found = before[found]
    return found


def _programs(solution: Solution, problem: Problem, given: Network, kernel: OffloadKernel) -> dict[int, Program]:
    """From the last to the first: each is told what of those behind begins before it."""
    made: dict[int, Program] = {}
    for task in reversed(problem.tasks):
        option = solution.chosen[task.index]
        during = task.during if option.ahead else None
        view = given.graph.view(given.graph.layers[task.index])
        between = 0 if during is None else _between(task.index, during, made)
        made[task.index] = program(view, option.candidate, kernel.machine, during, between)
    return dict(sorted(made.items()))


def _between(index: int, during: int, behind: Mapping[int, Program]) -> int:
    """Transfers for layers behind that begin after those for this one, and before it runs."""
    return sum(
        transfer.times
        for one in behind.values()
        if one.during is not None and during <= one.during <= index
        for transfer in one.ahead
    )
