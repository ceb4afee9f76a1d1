"""The shapes, values and results of TFLM's own operator tests."""

from __future__ import annotations

import json

import pytest

from tests.support.emitted import ROOT
from tests.tflm.case import files, load
from tests.tflm.held import refusal, results, runnable
from tests.tflm.litert_types import supported


@pytest.mark.parametrize("name", files())
def test_firmline_litert_and_tflm_agree(name: str) -> None:
    cases = runnable(name)
    assert [result.wrong for result in (results(cases) if cases else []) if result.wrong] == []


@pytest.mark.parametrize("name", files())
def test_what_is_refused_says_why(name: str) -> None:
    for case in load(name):
        told = refusal(case) if case.refused else ""
        assert not told or case.refused in told, case.name


@pytest.mark.parametrize("name", ["ADD", "ARG_MAX", "CONV_2D", "LOGICAL_OR", "UNPACK"])
def test_litert_takes_the_types_that_are_told_of_it(name: str) -> None:
    """If not: python -m tests.tflm.litert_types > stages/operators/litert_types.json"""
    told = json.loads((ROOT / "stages/operators/litert_types.json").read_text())
    assert supported(name) == told[name]
