"""Upper bound of each layer's instructions, from machine code and a run's counts.

Execution is cut into segments. A segment begins where code is entered (a function, the target of a computed jump) and
at the head of a loop, and contains no loop. So a layer takes at most the sum over all beginnings of

    times that a segment began there x longest path through the code from there to the next beginning

The times are those of the run. The bound holds for all inputs for which loops and calls repeat as often as in the run:
only other branches may go other ways. `repeats` tells whether they did so in all inferences of the run.
"""

import shutil
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path

from stages.backends.simulators.program import run_program
from stages.backends.targets.spec import Target
from stages.backends.targets.timing import TimingModel, decoder
from stages.backends.timing.disassembly import disassemble
from stages.backends.timing.instruction import Instruction
from stages.backends.timing.log import COUNTS, TABLE, Counts, interval_counts
from stages.backends.timing.table import timing_table
from stages.support.messages.stage_error import StageError
from stages.support.system.scratch import temporary_folder

#: Decoders of the disassembly, by family.
DECODERS = {"cortex_m": "thumb", "riscv": "riscv"}
_UNCONDITIONAL = frozenset(("b", "j", "jal"))
_CALLS = frozenset(("bl", "blx", "jal", "jalr"))
_COMPUTED = frozenset(("bx", "tbb", "tbh", "jr", "jalr"))
_CALL_WITHOUT_REGISTER = "c.jal "
_NONE: Counts = (0, 0, 0, 0)


@dataclass(frozen=True)
class Bound:
    """The bound of a layer.

    instructions  most for any input
    repeats       loops and calls ran equally often in all inferences of the run
    counted       most in the run
    """

    instructions: int
    repeats: bool
    counted: int


@dataclass
class Code:
    """The instructions of a program in memory order, and where control goes after each.

    next       numbers of the instructions that may follow; calls continue after their return
    jumps      numbers of the instructions that jump to an instruction, without calls
    after_call the number of the call before an instruction
    """

    instructions: Sequence[Instruction]
    next: list[tuple[int, ...]] = field(default_factory=list)
    jumps: dict[int, list[int]] = field(default_factory=dict)
    after_call: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the control flow."""
        numbers = {one.address: number for number, one in enumerate(self.instructions)}
        for number, one in enumerate(self.instructions):
            after = numbers.get(one.end, -1)
            if _is_call(one):
                self.after_call[after] = number
                reached = [after]
            else:
                target = numbers.get(one.target, -1)
                self.jumps.setdefault(target, []).append(number)
                reached = [target, after] if _may_continue(one) else [target]
            self.next.append(tuple(dict.fromkeys(place for place in reached if place >= 0)))

    def begun(self, counts: Mapping[int, Counts]) -> dict[int, int]:
        """Return how often segments began at instructions that no known path leads to.

        Neither the code before such an instruction nor a branch leads to it.
        """
        begun = {}
        for number, (followed, entered, *_) in counts.items():
            falls_through = number > 0 and number in self.next[number - 1]
            known = sum(counts.get(jump, _NONE)[2] for jump in self.jumps.get(number, ()))
            if number in self.after_call:
                known += sum(counts.get(self.after_call[number], _NONE)[:2])
            if (times := entered + (0 if falls_through else followed) - known) > 0:
                begun[number] = times
        return begun


def worst_cases(
    elf: Path, target: Target, inputs: Path, layers: int, calls: Sequence[int], *, timeout: float
) -> list[Bound]:
    """Return the bound of each layer, and last that of the code after the last layer.

    inputs  inputs.bin of the run
    calls   the layers in the order of their calls, -1 for readings of the counter between rows of an input

    Raises StageError if the program fails, or if its readings of the counter do not fit the layers.
    """
    # Without a timing model, instructions have no cycles, but they are counted.
    model = target.timing_model or TimingModel.model_construct(
        name="", title="", source="", instructions=DECODERS[target.family], classes={}
    )
    target = target.model_copy(update={"timing_model": model})
    with temporary_folder("worst_case") as folder:
        shutil.copy(inputs, folder / "inputs.bin")
        (folder / TABLE).write_bytes(timing_table(elf, target, counts=True))
        finished = run_program(elf.resolve(), target, folder, timeout=timeout, timed=True)
        if finished.exit_code:
            raise StageError(f"the firmware ended with status {finished.exit_code}")
        intervals = interval_counts((folder / COUNTS).read_bytes())
    # The harness reads the counter before and after each call, and at the end of an inference.
    called = [*calls[1:], -1] if calls[0] == -1 else [*calls, -1]
    if (len(intervals) + 1) % (2 * len(called)):
        raise StageError("the run that counts instructions did not read the counter before and after each layer")
    inferences = [
        _by_layer(called, intervals[first : first + 2 * len(called) : 2], layers)
        for first in range(0, len(intervals), 2 * len(called))
    ]
    lines = disassemble(elf, target)
    code = Code(sorted(decoder(model.instructions).decode(lines), key=lambda one: one.address))
    return [bound(code, [inference[layer] for inference in inferences]) for layer in range(layers + 1)]


def bound(code: Code, inferences: Sequence[Mapping[int, Counts]]) -> Bound:
    """Return the bound of a layer whose instructions were counted in some inferences."""
    runs = [{number: sum(counts[:2]) for number, counts in inference.items()} for inference in inferences]
    beginnings: dict[int, int] = {}
    for inference in inferences:
        for number, times in code.begun(inference).items():
            beginnings[number] = max(times, beginnings.get(number, 0))
    reached, waiting = set[int](), list(beginnings)
    while waiting:
        number = waiting.pop()
        if number not in reached:
            reached.add(number)
            waiting += code.next[number]
    heads: set[int] = set()
    total = _segments(code, reached, beginnings, set(), runs, heads)
    repeats = all(len({run.get(head, 0) for run in runs}) == 1 for head in heads)
    repeats = repeats and all(code.begun(each).keys() == beginnings.keys() for each in inferences)
    return Bound(total, repeats, max(sum(run.values()) for run in runs))


def _segments(
    code: Code,
    nodes: Set[int],
    beginnings: Mapping[int, int],
    cut: Set[int],
    runs: Sequence[Mapping[int, int]],
    heads: set[int],
) -> int:
    """Return the instructions of all segments within `nodes`.

    beginnings  how often segments begin at instructions
    cut         instructions at which segments end: heads of the loop that consists of `nodes`
    heads       receives the heads of inner loops
    """
    edges = {number: [after for after in code.next[number] if after in nodes and after not in cut] for number in nodes}
    group = _cycles(edges)
    members: dict[int, set[int]] = {}
    entered: dict[int, set[int]] = {}
    before: dict[int, set[int]] = {}
    for number, label in group.items():
        members.setdefault(label, set()).add(number)
        before.setdefault(label, set())
        for after in edges[number]:
            if group[after] != label:
                entered.setdefault(group[after], set()).add(after)
                before[label].add(group[after])
    for number in beginnings:
        entered.setdefault(group[number], set()).add(number)
    total, longest = 0, dict[int, int]()
    for label in TopologicalSorter(before).static_order():  # what follows comes first
        longest[label] = max((longest[after] for after in before[label]), default=0)
        own = members[label]
        if len(own) > 1 or any(number in edges[number] for number in own):
            inner = entered[label]
            heads |= inner
            times = {head: max(run.get(head, 0) for run in runs) for head in inner}
            total += _segments(code, own, times, inner, runs, heads)
        else:
            longest[label] += 1
    return total + sum(times * longest[group[number]] for number, times in beginnings.items())


def _cycles(edges: Mapping[int, Iterable[int]]) -> dict[int, int]:
    """Return a label for each node; nodes of one label reach each other."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    places = {number: place for place, number in enumerate(edges)}
    pairs = [(places[number], places[after]) for number, reached in edges.items() for after in reached]
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    matrix = csr_array(([1] * len(pairs), (rows, columns)), shape=(len(places), len(places)))
    labels = connected_components(matrix, connection="strong")[1]
    return {number: int(labels[place]) for number, place in places.items()}


def _by_layer(called: Sequence[int], intervals: Sequence[Mapping[int, Counts]], layers: int) -> list[dict[int, Counts]]:
    """Return the counts of one inference by layer; those after the last layer are last."""
    by_layer: list[dict[int, Counts]] = [{} for _ in range(layers + 1)]
    for layer, counts in zip(called, intervals, strict=True):
        total = by_layer[layer]
        for number, (followed, entered, jumped, _) in counts.items():
            before = total.get(number, _NONE)
            total[number] = (before[0] + followed, before[1] + entered, before[2] + jumped, 0)
    return by_layer


def _is_call(instruction: Instruction) -> bool:
    is_linked = (
        instruction.mnemonic in ("bl", "blx")
        or bool(instruction.writes)
        or instruction.text.startswith(_CALL_WITHOUT_REGISTER)
    )
    return instruction.mnemonic in _CALLS and is_linked


def _may_continue(instruction: Instruction) -> bool:
    """Return whether the instruction after it may follow."""
    if instruction.skippable:
        return True
    return instruction.mnemonic not in _UNCONDITIONAL | _COMPUTED and "pc" not in instruction.writes
