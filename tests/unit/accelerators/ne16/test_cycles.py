"""The closed form against figures of the published cost model."""

from __future__ import annotations

from typing import Any

import pytest

from stages.accelerators.ne16.cycles import cycles, cycles_of
from stages.accelerators.ne16.job import Job, Mode
from stages.accelerators.ne16.words import words


def job(mode: Mode, h: int, w: int, ki: int, ko: int, **more: Any) -> Job:
    return Job(
        mode=mode, h_out=h, w_out=w, ki=ki, ko=ko, input=0, input_pixel=ki, input_row=w * ki, output=0, output_pixel=ko,
        output_row=w * ko, weights=0, **{"scale": 0, "bias": 0, **more},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (job("conv3x3", 16, 16, 64, 64), 89_712),
        (job("conv1x1", 7, 10, 35, 41), 4_776),
        (job("depthwise3x3", 9, 8, 37, 37), 5_157),
        (job("conv3x3", 6, 8, 35, 33, weight_bits=2), 3_252),
    ],
)
def test_published_figures(layer: Job, expected: int) -> None:
    assert cycles(layer) == cycles_of(words(layer)) == expected
