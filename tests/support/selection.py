"""Which tests run without --all: grids as few cases as have each value once, rare risks not at all (tests/rare.txt)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
_ALL_CASES = ("conformance/",)  # selects its own cases


@cache
def rare() -> dict[str, int]:
    """Prefixes of test ids below tests/, each with N of "one case in N runs"; 0: none."""
    lines = [line.partition("#")[0].split() for line in (TESTS / "rare.txt").read_text().splitlines()]
    return {words[0]: int(words[1].removeprefix("1/")) if words[1:] else 0 for words in lines if words}


def is_rare(path: Path) -> bool:
    """Whether a file or folder has nothing but rare tests."""
    return path.is_relative_to(TESTS) and rare().get(path.relative_to(TESTS).as_posix(), 1) == 0


def left_out(items: Iterable[pytest.Item], named: Sequence[Path]) -> set[int]:
    """Return the ids of the tests that a run without --all leaves out; `named` are the command line's files."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.path.is_relative_to(TESTS):
            cases.setdefault(item.nodeid.partition("[")[0].removeprefix("tests/"), []).append(item)
    out: set[int] = set()
    for test, those in cases.items():
        one_in = next((number for prefix, number in rare().items() if test.startswith(prefix)), 1)
        if one_in != 1 and those[0].path not in named:
            out |= {id(item) for number, item in enumerate(those) if not one_in or number % one_in}
        elif one_in == 1 and not test.startswith(_ALL_CASES):
            params = [getattr(getattr(item, "callspec", None), "params", {}) for item in those]
            kept = covering([{(name, repr(value)) for name, value in one.items()} or {""} for one in params])
            out |= {id(item) for number, item in enumerate(those) if number not in kept}
    return out


def covering(values: Sequence[Iterable[Hashable]]) -> set[int]:
    """Return numbers of cases that have all values together, by a greedy set cover."""
    sets = [frozenset(each) for each in values]
    missing, cover = frozenset[Hashable]().union(*sets), set()
    while missing:
        best = max(range(len(sets)), key=lambda number: len(sets[number] & missing))
        cover.add(best)
        missing -= sets[best]
    return cover
