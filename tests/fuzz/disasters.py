"""What mutants must never do, done on purpose: how the tests know that it would be noticed."""

from __future__ import annotations

import os
import sys

from tests.fuzz.outcome import Outcome

HANG, CRASH, EAT, RAISE, PRINT, FINE = range(6)


def cause(seed: int, index: int) -> Outcome:
    """One of the constants above, by its number."""
    if index == HANG:
        while True:
            pass
    if index == CRASH:
        os.abort()
    if index == EAT:
        held = bytearray()
        while True:
            held += b"x" * (1 << 26)
    if index == RAISE:
        raise ValueError("on purpose")
    if index == PRINT:
        print("on purpose", file=sys.stderr)
    return Outcome("done")
