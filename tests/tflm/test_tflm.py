"""The shapes, values and results of TFLM's own operator tests."""

import json
import re

import pytest

from tests.support.emitted import ROOT
from tests.tflm.case import files, load
from tests.tflm.held import refusal, results, runnable, share
from tests.tflm.litert_types import supported


@pytest.mark.parametrize("name", files())
def test_firmline_litert_and_tflm_agree(name: str, every: int) -> None:
    cases = share(runnable(name)) if every > 1 else runnable(name)
    assert [result.wrong for result in (results(cases) if cases else []) if result.wrong] == []


@pytest.mark.parametrize("name", files())
def test_what_is_refused_says_why(name: str) -> None:
    for case in load(name):
        told = refusal(case) if case.refused else ""
        assert not told or case.refused in told, case.name


def test_the_page_counts_the_cases() -> None:
    """The totals of docs/explanation/arithmetic.md; the test of each case checks that computed ones are equal."""
    page = " ".join((ROOT / "docs/explanation/arithmetic.md").read_text().split())
    told = re.search(
        r"(\d+) cases of (\d+) operators\. (\d+) are equal\. (\d+) are refused, .*?\. "
        r"(\d+) cannot be written as a TFLite file\. None",
        page,
    )
    assert told is not None
    every = [case for name in files() for case in load(name)]
    impossible = sum(bool(case.impossible) for case in every)
    computed = [case for name in files() for case in runnable(name)]
    equal = sum(not case.differs for case in computed)
    refused = len(every) - impossible - len(computed)
    assert [int(number) for number in told.groups()] == [len(every), len(files()), equal, refused, impossible]


@pytest.mark.parametrize("name", ["ADD", "ARG_MAX", "CONV_2D", "LOGICAL_OR", "UNPACK"])
def test_litert_takes_the_types_that_are_given_for_it(name: str) -> None:
    """If not: python -m tests.tflm.litert_types > stages/ir/operators/litert_types.json"""
    told = json.loads((ROOT / "stages/ir/operators/litert_types.json").read_text())
    assert supported(name) == told[name]
