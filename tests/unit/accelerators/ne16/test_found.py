"""What NE16 remembers of layers' constants, and what its tiles do not depend on."""

from __future__ import annotations

import numpy as np

from stages.accelerators.ne16.descriptor import Ne16, Ne16Parameters
from stages.accelerators.tiles import Span, Tile
from stages.graph import LayerView
from tests.conformance.draw import Draw, bounds, with_constants, with_op
from tests.conformance.operators import add
from tests.conformance.operators.conv2d import conv2d
from tests.conformance.operators.windows import Window

ENGINE = Ne16(Ne16Parameters(), "engine")
CORE = Ne16(Ne16Parameters(), "core", frozenset({"rvp 0.9.11"}))


def layer(seed: int, units: int = 20) -> LayerView:
    return unclamped(conv2d(Draw(seed, "uint8"), Window((5, 6), (3, 3)), 6, units, weight_type=("int8", 0)))


def test_rounders_follow_from_more_than_multipliers() -> None:
    """Sums of other weights are larger: one multiplier has rounders beside some and none beside others."""
    view = layer(3)
    shift = np.full(20, -2, np.int32)
    shared = with_constants(view, shift=shift)
    small = with_constants(shared, weights=np.zeros_like(view.constant("weights")), bias=np.zeros(20, np.int32))
    for _ in range(2):
        fast = {CORE.tiling_key(one)[1] for one in (shared, small, shared)}  # type: ignore[index]
        assert fast == {False, True}
    assert (
        CORE.core(small, Tile(Span(0, 3), Span(0, 20))).after < CORE.core(shared, Tile(Span(0, 3), Span(0, 20))).after
    )


def unclamped(view: LayerView) -> LayerView:
    low, high = bounds("uint8")
    return with_op(view, act_min=low, act_max=high)


def test_scales_that_leave_the_engine_no_bits_are_refused_and_no_others() -> None:
    """Whatever the scale, what is not refused has constants."""
    reasons = {}
    for shift in (*range(-31, 31, 7), -8, 30):
        weighted = with_constants(layer(4), shift=np.full(20, shift, np.int32))
        summed = with_op(unclamped(add.add(Draw(5, "uint8"), [(1, 2, 4, 16)] * 2, op="add")), output_shift=shift)
        for view in (weighted, summed):
            reason = reasons[view.op.op, shift] = ENGINE.why_not(view)
            assert "leave" in reason and "bits" in reason if reason else ENGINE.own(view) is not None
    assert reasons["conv2d", -8] == reasons["add", -8] == "" and reasons["conv2d", 30] and reasons["add", 30]
