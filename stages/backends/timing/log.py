"""The log of a timed run: instructions and cycles at each reading of the program's counter.

Records of `struct cycles_record` in stages/backends/simulators/cycles/cycles.h, which also says where table and log
lie.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

TABLE, LOG = "cycles.table", "cycles.bin"
_RECORD = struct.Struct("<5Q")


@dataclass(frozen=True)
class Reading:
    """Totals up to a reading of the counter; `untimed` is the last instruction without cycles, or 0."""

    instructions: int
    cycles: tuple[int, int, int]
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


def _difference(before: tuple[int, int, int], after: tuple[int, int, int]) -> tuple[int, int, int]:
    least, estimate, most = (b - a for a, b in zip(before, after, strict=True))
    return (least, estimate, most)
