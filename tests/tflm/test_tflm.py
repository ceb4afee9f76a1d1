"""The shapes, values and results of TFLM's own operator tests."""

from __future__ import annotations

import pytest

from tests.tflm.case import files, load
from tests.tflm.held import refusal, results, runnable


@pytest.mark.parametrize("name", [name for name in files() if runnable(name)])
def test_firmline_litert_and_tflm_agree(name: str) -> None:
    assert [result.wrong for result in results(runnable(name)) if result.wrong] == []


@pytest.mark.parametrize("name", files())
def test_what_is_refused_says_why(name: str) -> None:
    for case in load(name):
        if case.refused:
            assert case.refused in refusal(case), case.name
