"""Cycles of straight code and loops on an in-order pipeline.

It may issue several instructions in a cycle. An instruction issues as early as its operands, its units and the
instruction before it allow:

    issue  together with the instruction before it, if both may issue together; else when that has ended
    end    issue + `cycles`; an instruction issued together with a longer one ends with that

A figure of the table is the distance between two ends. It is 0 for an instruction that issues together with the one
before it. So the figures of straight code add up to its time. A loop begins its next iteration in the state of its end:
`entered` of its first instruction is such that the iteration takes as long as the pipeline needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from stages.backends.targets.timing import InstructionClass, Pipeline
from stages.backends.timing.instruction import Instruction

# Instructions of a loop that are followed, and how often, to find the time of an iteration.
_WINDOW = 96
_TURNS = 3
_SHORT = 2  # bytes


@dataclass(frozen=True)
class Step:
    """An instruction in the pipeline.

    kind     name of its class
    cycles   of the instruction
    extra    cycles of the pair that it forms with the instruction before it
    is_next  whether it follows the step before it in memory
    """

    instruction: Instruction
    kind: str
    costs: Costs
    cycles: float
    extra: float = 0
    is_next: bool = True


@dataclass(frozen=True)
class Costs:
    """Estimates of an instruction class (stages/backends/targets/timing.py)."""

    latency: float | None
    units: tuple[str, ...]
    busy: float
    reads: Mapping[str, float]
    slot: str
    taken: float
    not_taken: float
    missed: float


def costs(rule: InstructionClass) -> Costs:
    """Return the estimated cycles of an instruction class whose parameters are resolved."""
    latency = None if rule.latency is None else _estimate(rule.latency)
    reads = {str(use): _estimate(amount) for use, amount in rule.reads.items()}
    times = (_estimate(rule.taken), _estimate(rule.not_taken), _estimate(rule.missed))
    return Costs(latency, rule.units, _estimate(rule.busy), reads, rule.slot, *times)


@dataclass
class State:
    """The pipeline after an instruction; times in cycles.

    end    when the last instruction ended
    issue  when it issued
    group  the steps that issued then
    ready  when each register can be used
    free   when each of a unit's copies is free
    """

    end: float = 0
    issue: float = 0
    group: tuple[Step, ...] = ()
    ready: dict[str, float] = field(default_factory=dict)
    free: dict[str, list[float]] = field(default_factory=dict)

    def copy(self) -> State:
        """Return an independent copy."""
        free = {unit: list(times) for unit, times in self.free.items()}
        return State(self.end, self.issue, self.group, dict(self.ready), free)


def distances(steps: Sequence[Step | None], pipeline: Pipeline) -> tuple[list[float], dict[int, float]]:
    """Return the cycles of each step, and of the first step of each loop in later iterations.

    The cycles of a step count from the end of the step before. Loops are by number. None is an instruction without a
    class. The state of the pipeline is unknown after it.
    """
    follows: list[float] = []
    ends: dict[int, State] = {}  # of backward branches, by number
    state = State()
    for number, step in enumerate(steps):
        if step is None or not step.is_next:
            state = State()
        if step is None:
            follows.append(0)
            continue
        before = state.end
        _run(state, step, steps[number - 1] if number else None, pipeline)
        follows.append(state.end - before)
        if "backward" in step.instruction.facts:
            ends[number] = state.copy()
    return follows, _entered(steps, follows, ends, pipeline)


def _entered(
    steps: Sequence[Step | None], follows: Sequence[float], ends: Mapping[int, State], pipeline: Pipeline
) -> dict[int, float]:
    numbers = {step.instruction.address: number for number, step in enumerate(steps) if step is not None}
    cycles: dict[int, float] = {}
    for last, state in ends.items():  # in order: the first branch to a target closes its inner loop
        branch = steps[last]
        head = -1 if branch is None else numbers.get(branch.instruction.target, -1)
        if 0 <= head <= last and head not in cycles:
            turn = [step for step in steps[head : min(last + 1, head + _WINDOW)] if step is not None]
            turns = _TURNS if len(turn) == last + 1 - head else 1
            rest = sum(follows[head + 1 : head + len(turn)])
            cycles[head] = _turn([replace(turn[0], extra=0), *turn[1:]], turns, state, pipeline) - rest
    return cycles


def _turn(turn: Sequence[Step], turns: int, state: State, pipeline: Pipeline) -> float:
    """Return the time of the last of some turns through a loop, from the state of its end."""
    begin = state.end
    for _ in range(turns):
        state.group = ()
        state.end += turn[-1].costs.taken if turns > 1 else 0
        begin = state.end
        before: Step | None = None
        for step in turn:
            _run(state, step, before, pipeline)
            before = step
    return state.end - begin


def _run(state: State, step: Step, before: Step | None, pipeline: Pipeline) -> None:
    """Issue a step: update `state` from before the step to after it."""
    if before is not None and before.costs.not_taken and step.is_next:
        state.end += before.costs.not_taken
        state.group = ()
    rule, instruction = step.costs, step.instruction
    free = [state.free.setdefault(unit, [0.0] * pipeline.units[unit]) for unit in rule.units]
    earliest = max(_operands_ready(state, step), *map(min, free)) if free else _operands_ready(state, step)
    if earliest <= state.issue and _may_join(state.group, step, pipeline):
        at = state.issue
        state.group = (*state.group, step)
    else:
        at = max(state.end, earliest) + step.extra
        state.group = (step,)
    for copies in free:
        copies[copies.index(min(copies))] = at + rule.busy
    result = at + (step.cycles if rule.latency is None else rule.latency)
    for register in instruction.writes:
        state.ready[register] = result
    for register in instruction.updates:
        state.ready[register] = at + 1
    state.issue = at
    state.end = max(state.end, at + step.cycles)


def _operands_ready(state: State, step: Step) -> float:
    """Return from when on the operands allow the issue."""
    found = 0.0
    for register in step.instruction.reads:
        if (ready := state.ready.get(register, 0.0)) > found:
            found = max(found, ready - (_needed_after(step, register) if step.costs.reads else 0))
    return found


def _needed_after(step: Step, register: str) -> float:
    instruction, reads = step.instruction, step.costs.reads
    for use, those in (
        ("address", instruction.addresses),
        ("accumulator", instruction.accumulators),
        ("data", instruction.data),
    ):
        if register in those:
            return reads.get(use, 0)
    return reads.get("other", 0)


def _may_join(group: Sequence[Step], step: Step, pipeline: Pipeline) -> bool:
    """Return whether a step may issue together with a group, by width, size and class."""
    if not group or len(group) >= pipeline.width or step.costs.slot in ("first", "alone"):
        return False
    before = group[-1]
    if before.cycles > 1 or before.costs.slot in ("last", "alone"):
        return False
    if pipeline.short and not before.instruction.size == step.instruction.size == _SHORT:
        return False
    return not pipeline.together or any(
        _named(before.kind, pair.first) and _named(step.kind, pair.then) for pair in pipeline.together
    )


def _named(kind: str, names: tuple[str, ...]) -> bool:
    return "*" in names or kind in names


def _estimate(amount: object) -> float:
    assert isinstance(amount, tuple)  # not the name of a parameter
    return float(amount[1])
