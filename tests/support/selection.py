"""Which tests run without --all.

- of a grid, as few cases as have each value once
- of tests with a parameter `target`, those of the first target
- none of the rare and slow tests in tests/rare.txt; `--slow`, which .ci/run has, adds the slow ones
"""

from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
_ALL_CASES = ("conformance/",)  # selects its own cases
_ALL_TARGETS = ("unit/targets/", "unit/simulators/", "unit/timing/")  # their subject


@cache
def rare(*, slow: bool = False) -> dict[str, int]:
    """Return prefixes of test ids below tests/, each with N of "one case in N runs"; 0: none.

    With `slow` tests marked so are as all others.
    """
    shares = {}
    for line in (TESTS / "rare.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            prefix, *marks = line.split()
            share = next((int(mark[2:]) for mark in marks if mark.startswith("1/")), int("slow" in marks))
            shares[prefix] = share if slow or "slow" not in marks else 0
    return shares


def is_rare(path: Path, *, slow: bool = False) -> bool:
    """Whether a file or folder has only tests that do not run."""
    return path.is_relative_to(TESTS) and rare(slow=slow).get(path.relative_to(TESTS).as_posix(), 1) == 0


def left_out(items: Iterable[pytest.Item], named: Sequence[Path], *, slow: bool = False) -> set[int]:
    """Return the ids of the tests that a run without --all leaves out; `named` are the command line's files."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.path.is_relative_to(TESTS):
            cases.setdefault(item.nodeid.partition("[")[0].removeprefix("tests/"), []).append(item)
    out: set[int] = set()
    for test, those in cases.items():
        one_in = next((number for prefix, number in rare(slow=slow).items() if test.startswith(prefix)), 1)
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
