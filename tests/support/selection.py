"""Which tests run without --all.

Of a grid as few cases as have each value once, of tests with a parameter `target` those of the first one, of rare risks
none (tests/rare.txt).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
_ALL_CASES = ("conformance/",)  # selects its own cases
_ALL_TARGETS = ("unit/targets/", "unit/simulators/", "unit/timing/")  # their subject


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
            if not test.startswith(_ALL_TARGETS):
                first = _params(those[0]).get("target")
                out |= {id(item) for item in those if _params(item).get("target") != first}
                those = [item for item in those if id(item) not in out]
            kept = covering([{(name, repr(value)) for name, value in _params(item).items()} or {""} for item in those])
            out |= {id(item) for number, item in enumerate(those) if number not in kept}
    return out


def _params(item: pytest.Item) -> dict[str, object]:
    return getattr(getattr(item, "callspec", None), "params", {})


def covering(values: Sequence[Iterable[Hashable]]) -> set[int]:
    """Return numbers of cases that have all values together, by a greedy set cover."""
    sets = [frozenset(each) for each in values]
    missing, cover = frozenset[Hashable]().union(*sets), set()
    while missing:
        best = max(range(len(sets)), key=lambda number: len(sets[number] & missing))
        cover.add(best)
        missing -= sets[best]
    return cover
