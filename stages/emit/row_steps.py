"""The calls of a streamed group in order: the table that its C function runs through."""

from collections.abc import Sequence
from typing import NamedTuple

from stages.lower.streaming.plan import StreamedGroup

_LONGEST = 256  # steps that are searched for repetitions


class RowSteps(NamedTuple):
    """The steps of a group, of which [first, end) run `repeats` more times.

    steps   2 n is a call of layer n of the group, 2 n + 1 one with its other number of rows
    padded  tensors that get rows of padding: one row of tensor n in step 2 n + 2 * layers
    wait    the step after these, which waits for a row from the caller
    """

    steps: tuple[int, ...]
    padded: tuple[str, ...] = ()
    wait: int = 0
    first: int = 0
    end: int = 0
    repeats: int = 0


def row_steps(group: StreamedGroup) -> RowSteps:
    """Return the steps of a group up to its last call."""
    schedule, layers = group.schedule(), {layer.index: (n, layer) for n, layer in enumerate(group.layers)}
    padded = tuple(dict.fromkeys(name for _, name in schedule.padding))
    wait, end = 2 * (len(layers) + len(padded)), 0
    steps: list[int] = []
    appended = iter([*schedule.padding, (-1, "")])
    before, name = next(appended)
    for position, (index, _, rows) in enumerate(schedule.firings):
        while before == position:
            steps.append(2 * (len(layers) + padded.index(name)))
            before, name = next(appended)
        if index < 0:
            steps.append(wait)
            continue
        number, layer = layers[index]
        steps.append(2 * number + (rows != layer.rows))
        end = len(steps)
    del steps[end:]
    if group.pushed:
        steps.remove(wait)  # for the first row
    return folded(steps)._replace(padded=padded, wait=wait)


def folded(steps: Sequence[int]) -> RowSteps:
    """Return the steps with the repetition left out that makes them shortest."""
    saved, best = 0, RowSteps(tuple(steps))
    for length in range(1, min(len(steps) // 2, _LONGEST) + 1):
        equal = 0
        for at in range(len(steps) - length):
            equal = equal + 1 if steps[at] == steps[at + length] else 0
            if equal // length * length > saved:
                repeats, first = equal // length, at - equal + 1
                saved, end = repeats * length, first + length
                best = RowSteps((*steps[:end], *steps[end + saved :]), first=first, end=end, repeats=repeats)
    return best
