"""Convolutions seen as depthwise layers, and as those of one channel, have the same results."""

from __future__ import annotations

import numpy as np
import pytest

from stages.graph import LayerView
from stages.kernels import registry
from stages.kernels.single_channel import as_depthwise, as_one_channel, has_single_channels
from tests.conformance.draw import Draw
from tests.conformance.operators.conv2d import conv2d
from tests.conformance.operators.windows import Window, any_window, around
from tests.conformance.targets import load_target


def results(view: LayerView, draw: Draw) -> np.ndarray:
    """The outputs for bytes that a draw of this seed gives, whatever shape they are seen in."""
    x = view.inputs[0]
    values = np.random.default_rng(draw.seed).integers(0, 256, x.elements).astype(np.uint8).view(x.dtype)
    return np.asarray(view.op.compute(view, values.reshape(x.shape))).reshape(view.outputs[0].shape)


@pytest.mark.parametrize("groups", [1, 2, 5])
@pytest.mark.parametrize("units", [1, 3])
@pytest.mark.parametrize("kernel_layout", ["OHWI", "HWIO", "OIHW"])
def test_filters_of_one_channel_are_a_depthwise_layer(groups: int, units: int, kernel_layout: str) -> None:
    draw = Draw(10 * groups + units, ("int8", "uint8")[groups % 2])
    layer = conv2d(draw, any_window(draw), 1, units, groups=groups, kernel_layout=kernel_layout)
    seen = as_depthwise(layer)
    assert seen.op.op == "depthwise_conv2d"
    assert seen.op.depth_multiplier == units
    np.testing.assert_array_equal(results(seen, draw), results(layer, draw))


@pytest.mark.parametrize("seed", range(12))
def test_several_channels_are_as_many_columns_of_one(seed: int) -> None:
    draw = Draw(seed, ("int8", "uint8")[seed % 2])
    kernel, stride = (draw.integer(1, 4), draw.integer(1, 4)), (draw.integer(1, 3), draw.integer(1, 3))
    window = around(kernel, stride, (draw.integer(1, 5), draw.integer(1, 5)), draw)
    layer = conv2d(
        draw,
        window,
        draw.integer(2, 6),
        draw.integer(1, 3),
        batch=1 + seed % 2,
        kernel_layout=("OHWI", "HWIO", "OIHW")[seed % 3],
    )
    seen = as_depthwise(as_one_channel(layer))
    assert seen.op.in_channels == 1
    np.testing.assert_array_equal(results(seen, draw), results(layer, draw))


def test_what_is_no_such_layer_stays() -> None:
    draw = Draw(1)
    grouped = conv2d(draw, Window((4, 4), (3, 3)), 2, 2, groups=2)
    dilated = conv2d(draw, Window((9, 9), (3, 3), dilation=(1, 2)), 3, 2)
    planar = conv2d(draw, Window((4, 4), (3, 3)), 3, 2, layouts=("NCHW", "NHWC"))
    for layer in (grouped, dilated, planar):
        assert not has_single_channels(layer.op)
        assert as_depthwise(layer) is layer
        assert as_one_channel(layer) is layer


def test_kernels_refuse_what_is_none() -> None:
    """Rules may name a kernel for any layer of its operators."""
    target = load_target("cortex-m4")
    kernel = registry.kernels(target.kernels)["arm_dsp.depthwise3x3_s8"]
    layer = conv2d(Draw(2), Window((5, 5), (3, 3)), 2, 2)
    assert not kernel.is_for(layer.op)
    assert "several channels" in kernel.why_not(layer, target)
    single = conv2d(Draw(2), Window((5, 5), (3, 3)), 1, 2)
    assert kernel.is_for(single.op)
    assert kernel.why_not(single, target) == ""
