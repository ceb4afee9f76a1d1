"""The shapes, values and results of TFLM's own operator tests."""

from __future__ import annotations

import pytest

from tests.tflm.case import files, load
from tests.tflm.held import refusal, results, runnable


@pytest.mark.parametrize("name", files())
def test_firmline_litert_and_tflm_agree(name: str) -> None:
    cases = runnable(name)
    assert [result.wrong for result in (results(cases) if cases else []) if result.wrong] == []


@pytest.mark.parametrize("name", files())
def test_what_is_refused_says_why(name: str) -> None:
    for case in load(name):
        told = refusal(case) if case.refused else ""
        assert not told or case.refused in told, case.name
