"""Words, packing and the model of NE16 against the definition of a convolution, and against TFLite's arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stages.accelerators.ne16.job import Job, Mode, Padding, Refused, split
from stages.accelerators.ne16.packing import pack
from stages.accelerators.ne16.words import words
from stages.arithmetic.fixed_point import multiply_by_quantized_multiplier
from tests.support.ne16_jobs import LaidOut, laid_out
from tests.support.ne16_model import run

MODES: tuple[Mode, ...] = ("conv3x3", "depthwise3x3", "conv1x1")


def computed(drawn: LaidOut) -> np.ndarray[Any, Any]:
    l1 = bytearray(drawn.l1)
    for part in split(drawn.job):
        run(words(part), l1)
    before = bytearray(drawn.l1)
    y, x, c = np.ix_(*map(np.arange, drawn.output_shape))
    job, size = drawn.job, drawn.job.output_bits // 8
    at = job.output - 0x1000_0000 + y * job.output_row + x * job.output_pixel + c * size
    changed = np.frombuffer(l1, np.uint8) != np.frombuffer(before, np.uint8)
    assert set(np.nonzero(changed)[0]) <= {int(n) + b for n in at.reshape(-1) for b in range(size)}
    return drawn.output(bytes(l1))


def expected(drawn: LaidOut) -> np.ndarray[Any, Any]:
    """In Python's integers of any size, value by value."""
    job = drawn.job
    found = np.zeros(drawn.output_shape, np.int64)
    for index, total in np.ndenumerate(drawn.sums()):
        c = index[2]
        found[index] = _one(drawn, _wrapped(int(total), 32), c, index)
    assert job.extension is None or job.extension.parameters is None
    return found


def _wrapped(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _one(drawn: LaidOut, total: int, c: int, index: tuple[int, ...]) -> int:
    job = drawn.job
    if job.scale is None:
        return total
    value = total * int(drawn.scale[c])
    value = _wrapped(_wrapped(value, 32) + int(drawn.bias[c]), 32) if job.bias is not None else _wrapped(value, 48)
    value >>= int(drawn.shift[c])
    if job.output_bits == 8:
        return max(-128, min(127, value)) if job.signed else max(0, min(255, value))
    if not job.signed:
        return max(value, 0) % (1 << 32)
    shifted = job.shifts is not None or job.shift
    return max(-(1 << 31), min((1 << 31) - 1, value)) if shifted else _wrapped(value, 32)


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize("stride", [1, 2])
def test_every_padding_at_every_remainder(size: int, stride: int) -> None:
    """The value reaches all four edges, also where the last patch is hardly filled."""
    for top, bottom in ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 2), (1, 2)):
        drawn = laid_out(
            7, "conv3x3", h_out=size, w_out=8 - size, stride=stride, padding=(top, bottom, bottom, top),
            ki=5, ko=6, pad_value=200, scale_bits=0, gap=2, stream_in=False,
        )  # fmt: skip
        assert np.array_equal(computed(drawn), expected(drawn)), (top, bottom)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(12))
def test_the_extension_rounds_and_adds_as_tflite(mode: Mode, seed: int) -> None:
    drawn = laid_out(seed, mode, tflite=True, signed_input=bool(seed % 2))
    extension, given = drawn.job.extension, drawn.parameters
    assert extension is not None
    total = drawn.sums() + drawn.bias
    rounding = "single" if extension.rounds_once else "double"
    values = multiply_by_quantized_multiplier(total, drawn.scale, drawn.shift, rounding) + given.zero_point
    values = np.clip(values, given.minimum, given.maximum)
    if add := given.residual:
        own = multiply_by_quantized_multiplier(
            (values - given.zero_point) << 20, add.own_multiplier, add.own_shift, "double"
        )
        other = multiply_by_quantized_multiplier(
            (drawn.residual - add.zero_point) << 20, add.multiplier, add.shift, "double"
        )
        values = multiply_by_quantized_multiplier(own + other, add.total_multiplier, add.total_shift, "double")
        values = np.clip(values + add.output_zero_point, add.minimum, add.maximum)
    assert values.size < 64 or len(np.unique(values)) > 8, "the draw saturates"
    assert np.array_equal(computed(drawn), values)


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
        ({"mode": "depthwise3x3", "stream_in": True, "output_bits": 32}, "loses the weight offset"),
        ({"scale_bits": 16, "bias": None, "shifts": 0x1000_5000}, "need a bias"),
    ],
)
def test_jobs_that_the_engine_gets_wrong_are_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(Refused, match=told):
        words(replace(SMALL, **change))
