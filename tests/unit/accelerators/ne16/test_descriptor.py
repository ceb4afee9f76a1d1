"""Which layers NE16 computes, the constants that it has of them, and what its jobs take."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from stages.backends.accelerators.ne16.cycles import cycles, cycles_of
from stages.backends.accelerators.ne16.descriptor import Ne16, Ne16Parameters
from stages.backends.accelerators.ne16.job import Job, Mode
from stages.backends.accelerators.ne16.words import words
from stages.backends.accelerators.tiles import Span
from stages.ir.graph import LayerView
from tests.conformance.draw import Draw, bounds, with_constants, with_op
from tests.conformance.operators import add, conv2d
from tests.conformance.operators.depthwise_conv2d import depthwise
from tests.conformance.operators.windows import Window

CORE = Ne16(Ne16Parameters(), "core")
RVP = Ne16(Ne16Parameters(), "core", frozenset({"rvp"}))
ENGINE = Ne16(Ne16Parameters(), "engine")
EXTENDED = Ne16(Ne16Parameters(extension="tflite"))
ALL = (CORE, RVP, ENGINE, EXTENDED)


def unclamped(view: LayerView) -> LayerView:
    low, high = bounds(view.outputs[0].dtype)
    return with_op(view, act_min=low, act_max=high)


def convolution(seed: int, units: int = 20) -> LayerView:
    return unclamped(conv2d.conv2d(Draw(seed, "uint8"), Window((5, 6), (3, 3)), 20, units, weight_type=("int8", 0)))


@pytest.mark.parametrize("bits", range(1, 9))
def test_weights_take_as_few_bits_as_hold_them(bits: int) -> None:
    """Wherever their range lies; two at least."""
    view, whole = convolution(bits, 40), Span(0, 40)
    for engine in ALL:
        for least in {-128, -(1 << bits - 1), 128 - (1 << bits)}:
            weights = np.random.default_rng(bits).integers(least, least + (1 << bits), (40, 3, 3, 20)).astype(np.int8)
            weights[0, 0, 0, :2] = least, least + (1 << bits) - 1
            few = engine.constant_bytes(with_constants(view, weights=weights), whole)
            weights = weights.copy()
            weights[0, 0, 0, :2] = -128, 127
            many = engine.constant_bytes(with_constants(view, weights=weights), whole)
            assert many - few == 40 * 2 * 18 * (8 - max(bits, 2))


SUMS, WEIGHTED = (ENGINE, EXTENDED), ALL


@pytest.mark.parametrize(
    ("reason", "engines", "layer"),
    [
        ("a dilation of 2x2", WEIGHTED,
         lambda draw: conv2d.conv2d(draw, Window((9, 9), (3, 3), dilation=(2, 2)), 4, 4)),
        ("2 groups of channels", WEIGHTED, lambda draw: conv2d.conv2d(draw, Window((5, 5)), 4, 4, groups=2)),
        ("a depth multiplier of 2", WEIGHTED, lambda draw: depthwise(draw, Window((5, 5), (3, 3)), 4, multiplier=2)),
        ("a depthwise window of 5x5, stride 1x1", WEIGHTED, lambda draw: depthwise(draw, Window((7, 7), (5, 5)), 4)),
        ("stride 2 needs an even number", WEIGHTED, lambda draw: depthwise(draw, Window((7, 7), (3, 3), (2, 2)), 5)),
        ("not a multiple of 16", (ENGINE,), lambda draw: add.add(draw, [(1, 3, 3, 5)] * 2, op="add")),
        ("tensors of different shapes", SUMS, lambda draw: add.add(draw, [(1, 4, 4, 16), (1, 1, 1, 16)], op="add")),
    ],
)  # fmt: skip
def test_what_the_engine_cannot_compute_it_refuses_with_the_reason(
    reason: str, engines: tuple[Ne16, ...], layer: Callable[[Draw], LayerView]
) -> None:
    for engine in engines:
        assert reason in engine.why_not(unclamped(layer(Draw(3, "uint8"))))


def test_results_that_are_clamped_closer_than_the_type_are_not_the_engines() -> None:
    layer = conv2d.conv2d(Draw(1, "uint8"), Window((4, 4)), 4, 4, act_min=0, act_max=200)
    assert "a clamp to 0 to 200" in ENGINE.why_not(layer)
    assert CORE.why_not(layer) == EXTENDED.why_not(layer) == ""


def test_scales_that_leave_the_engine_no_bits_are_refused_and_no_others() -> None:
    reasons = {}
    for shift in (*range(-31, 31, 7), -8, 30):
        weighted = with_constants(convolution(4), shift=np.full(20, shift, np.int32))
        summed = with_op(unclamped(add.add(Draw(5, "uint8"), [(1, 2, 4, 16)] * 2, op="add")), output_shift=shift)
        for view in (weighted, summed):
            reason = reasons[view.op.op, shift] = ENGINE.why_not(view)
            assert re.search("exceed .* bits|no bits", reason) if reason else ENGINE.own(view) is not None
    assert reasons["conv2d", -8] == reasons["add", -8] == "" and reasons["conv2d", 30] and reasons["add", 30]


SMALL = Job(
    mode="conv3x3", h_out=4, w_out=4, ki=16, ko=16, input=0x1000_0000, input_pixel=16, input_row=64,
    output=0x1000_1000, output_pixel=16, output_row=64, weights=0x1000_2000, scale=0x1000_4000, bias=0x1000_4100,
)  # fmt: skip


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
