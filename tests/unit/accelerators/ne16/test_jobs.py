"""What jobs of NE16 take, and jobs and weights that it cannot compute."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stages.backends.accelerators.ne16.cycles import cycles, cycles_of
from stages.backends.accelerators.ne16.job import Job, Mode, Padding, Refused
from stages.backends.accelerators.ne16.packing import pack
from stages.backends.accelerators.ne16.words import words


@pytest.mark.parametrize(
    ("weights", "mode", "told"),
    [
        (np.full((1, 1, 1, 4), 4), "conv1x1", "weights 4 to 4 do not fit 2 bits from 0 on"),
        (np.full((1, 1, 1, 4), -1), "conv1x1", "do not fit"),
        (np.zeros((4, 3, 3)), "depthwise3x3", "no weights of shape 4x3x3"),
        (np.zeros((4, 1, 1, 3)), "conv3x3", "no weights of shape 4x1x1x3"),
    ],
)
def test_weights_that_do_not_fit(weights: np.ndarray[Any, Any], mode: Mode, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        pack(weights, mode, 2, 0)


SMALL = Job(
    mode="conv3x3", h_out=4, w_out=4, ki=16, ko=16, input=0x1000_0000, input_pixel=16, input_row=64,
    output=0x1000_1000, output_pixel=16, output_row=64, weights=0x1000_2000, scale=0x1000_4000, bias=0x1000_4100,
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"weight_bits": 9}, "weights of 9 bits"),
        ({"mode": "depthwise3x3", "ko": 8}, "as many output as input channels"),
        ({"padding": Padding(3, 0, 0, 0)}, "padding"),
        ({"mode": "conv1x1", "padding": Padding(1, 0, 0, 0)}, "padding"),
        ({"pad_value": 256}, "padding value of 256"),
        ({"weight_offset": 256}, "weight offset of 256"),
        ({"scale": None}, "sums are written in 32 bits"),
        ({"stride": 2}, "split"),
        ({"padding": Padding(0, 0, 2, 0)}, "split"),
        ({"stride": 2, "h_out": 2, "w_out": 2, "output_pixel": 15}, "even distances"),
        ({"mode": "depthwise3x3", "stream_in": True, "output_bits": 32}, "ignores the weight offset"),
        ({"scale_bits": 16, "bias": None, "shifts": 0x1000_5000}, "need a bias"),
    ],
)
def test_jobs_that_the_engine_gets_wrong_are_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(Refused, match=told):
        words(replace(SMALL, **change))


@pytest.mark.parametrize(
    ("mode", "sizes", "bits", "expected"),
    [
        ("conv3x3", (16, 16, 64, 64), 8, 89_712),
        ("conv1x1", (7, 10, 35, 41), 8, 4_776),
        ("depthwise3x3", (9, 8, 37, 37), 8, 5_157),
        ("conv3x3", (6, 8, 35, 33), 2, 3_252),
    ],
)
def test_figures_of_the_published_cost_model(mode: Mode, sizes: tuple[int, ...], bits: int, expected: int) -> None:
    h, w, ki, ko = sizes
    shape = {"h_out": h, "w_out": w, "ki": ki, "ko": ko, "output_pixel": ko, "output_row": w * ko}
    job = replace(SMALL, mode=mode, weight_bits=bits, input_pixel=ki, input_row=w * ki, **shape)
    assert cycles(job) == cycles_of(words(job)) == expected
