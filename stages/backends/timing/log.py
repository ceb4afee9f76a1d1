"""The log of a timed run: instructions and cycles at each reading of the program's counter.

Records of `struct cycles_record` in stages/backends/simulators/cycles/cycles.h, which also says where table and log
lie.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

TABLE, LOG, COUNTS = "cycles.table", "cycles.bin", "executed.bin"
_RECORD = struct.Struct("<Q3dQ")
_COUNT = struct.Struct("<5Q")
_END = 2**64 - 1
#: How often an instruction ran after the one before it in memory, after a jump to it, jumped, and was predicted wrong.
Counts = tuple[int, int, int, int]


@dataclass(frozen=True)
class Reading:
    """Totals at a reading of the counter; `untimed`: last instruction without cycles, or 0."""

    instructions: int
    cycles: tuple[float, float, float]
    untimed: int


@dataclass(frozen=True)
class Interval:
    """Totals between two readings."""

    instructions: int
    cycles: tuple[int, int, int]
    untimed: int


def readings(log: bytes) -> list[Reading]:
    """Return the records in order."""
    return [Reading(count, (a, b, c), untimed) for count, a, b, c, untimed in _RECORD.iter_unpack(log)]


def intervals(log: Sequence[Reading]) -> list[Interval]:
    """Return the totals between each reading and the next."""
    return [
        Interval(after.instructions - before.instructions, _difference(before.cycles, after.cycles), after.untimed)
        for before, after in pairwise(log)
    ]


def interval_counts(counts: bytes) -> list[dict[int, Counts]]:
    """Return executions between each reading and the next, by instruction number.

    `counts` is the file COUNTS of a run whose table was made with `counts=True`.
    """
    totals: list[dict[int, Counts]] = [{}]
    for number, *ways in _COUNT.iter_unpack(counts):
        if number == _END:
            totals.append({})
        else:
            totals[-1][number] = (ways[0], ways[1], ways[2], ways[3])
    intervals = []
    for before, after in pairwise(totals[:-1]):
        more = {number: _more(before.get(number, (0, 0, 0, 0)), ways) for number, ways in after.items()}
        intervals.append({number: ways for number, ways in more.items() if any(ways)})
    return intervals


def _more(before: Counts, after: Counts) -> Counts:
    followed, entered, jumped, missed = (b - a for a, b in zip(before, after, strict=True))
    return (followed, entered, jumped, missed)


def _difference(before: tuple[float, float, float], after: tuple[float, float, float]) -> tuple[int, int, int]:
    least, estimate, most = (round(b - a) for a, b in zip(before, after, strict=True))
    return (least, estimate, most)
