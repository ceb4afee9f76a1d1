"""Plan a network for the accelerator: tensors in L1, layers' programs, the timeline."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from stages.ir.arrays import Array
from stages.ir.graph import Graph
from stages.lower.arena import Liveness
from stages.lower.arena.liveness import liveness
from stages.lower.arena.planner import plan as plan_arena
from stages.lower.offload.kernel import OffloadKernel
from stages.lower.offload.machine import ALIGNMENT
from stages.lower.offload.problem import Problem, Solution, Task
from stages.lower.offload.program import Program, Search, Stretch, Times
from stages.lower.offload.residence import buffers_in_l1
from stages.lower.offload.schedule import constants_of, gathers, program
from stages.lower.offload.search import Planned, search
from stages.lower.offload.timeline import Step, network_times


@dataclass(frozen=True)
class Offload:
    """The result of the pass, by layer index.

    resident   buffers of tensors that lie in L1, by their names in `stages.lower.arena.liveness`
    constants  arrays that transfers read, by key: `constants` has a block for each tile of channels; `padding` has the
               bytes of windows beyond the image
    times      predicted, of all layers
    search     the solver's report, None if nothing is offloaded
    """

    programs: Mapping[int, Program] = field(default_factory=dict)
    constants: Mapping[int, Mapping[str, Array]] = field(default_factory=dict)
    resident: tuple[str, ...] = ()
    times: Mapping[int, Times] = field(default_factory=dict)
    timeline: tuple[Stretch, ...] = ()
    search: Search | None = None


@dataclass(frozen=True)
class Network:
    """A graph with kernels.

    offloaded     indices of layers on the engine
    instructions  of the core for the other layers; layers without an entry do not run
    overlaid      layers that may write their output over an input
    """

    graph: Graph
    offloaded: Collection[int]
    instructions: Mapping[int, float]
    overlaid: frozenset[int]


def plan(network: Network, kernel: OffloadKernel) -> Offload:
    """Return programs that fit into L1 together."""
    graph, machine = network.graph, kernel.machine
    lives = liveness(graph, may_overlay=network.overlaid)
    running = [
        layer.index for layer in graph.layers if layer.index in network.offloaded or layer.index in network.instructions
    ]
    problem = _problem(network, kernel, lives, running)

    def timed(programs: Mapping[int, Program]) -> tuple[dict[int, Times], tuple[Stretch, ...]]:
        steps = [Step(index, programs.get(index), network.instructions.get(index, 0.0)) for index in running]
        return network_times(steps, machine)

    def make(solution: Solution) -> Planned:
        programs = _programs(solution, problem, network, kernel)
        buffers = buffers_in_l1(graph, network.overlaid, solution.resident, programs)
        times, _ = timed(programs)
        return Planned(
            solution,
            programs,
            plan_arena(buffers, ALIGNMENT).total,
            sum(layer_times.cycles for layer_times in times.values()),
        )

    planned, report = search(problem, make)
    times, timeline = timed(planned.programs)
    constants = {
        task.index: constants_of(
            graph.view(graph.layers[task.index]), planned.solution.chosen[task.index].candidate, machine
        )
        for task in problem.tasks
    }
    resident = tuple(sorted(planned.solution.resident))
    return Offload(planned.programs, constants, resident, times, timeline, report if problem.tasks else None)


def _problem(network: Network, kernel: OffloadKernel, lives: Liveness, running: Sequence[int]) -> Problem:
    tasks, used = [], set()
    before = dict(zip(running[1:], running, strict=False))
    for layer in network.graph.layers:
        if layer.index not in network.offloaded:
            continue
        homes = tuple(lives.home[name] for name in (*layer.inputs, *layer.outputs))
        used |= set(homes)
        options = kernel.options(network.graph.view(layer))
        tasks.append(Task(layer.index, homes, _during(network, before, layer.index, kernel), options))
    tensors = tuple(buffer for buffer in lives.buffers if buffer.name in used)
    return Problem(tuple(tasks), tensors, kernel.machine.bytes)


def _during(network: Network, before: Mapping[int, int], index: int, kernel: OffloadKernel) -> int | None:
    """Return the layer during which constants may be transferred early, None for the first.

    A layer that waits for gathered inputs is skipped.
    """
    previous = before.get(index)
    while previous is not None and previous in network.offloaded and previous in before:
        if not gathers(network.graph.view(network.graph.layers[previous]), kernel.machine.accelerator):
            break
        previous = before[previous]
    return previous


def _programs(solution: Solution, problem: Problem, network: Network, kernel: OffloadKernel) -> dict[int, Program]:
    """Return the programs, from the last to the first: each needs the later ones' transfers."""
    programs: dict[int, Program] = {}
    for task in reversed(problem.tasks):
        option = solution.chosen[task.index]
        during = task.during if option.ahead else None
        view = network.graph.view(network.graph.layers[task.index])
        between = 0 if during is None else _between(task.index, during, programs)
        programs[task.index] = program(view, option.candidate, kernel.machine, during, between)
    return dict(sorted(programs.items()))


def _between(index: int, during: int, behind: Mapping[int, Program]) -> int:
    """Return the number of later layers' early transfers between this layer's and its run."""
    return sum(
        transfer.times
        for later in behind.values()
        if later.during is not None and during <= later.during <= index
        for transfer in later.ahead
    )
