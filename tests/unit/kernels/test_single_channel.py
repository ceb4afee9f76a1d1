"""Convolutions seen as depthwise layers, and as those of one channel, have the same results."""

from __future__ import annotations

from stages.kernels import registry
from tests.conformance.draw import Draw
from tests.conformance.operators.conv2d import conv2d
from tests.conformance.operators.windows import Window
from tests.conformance.targets import load_target


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
