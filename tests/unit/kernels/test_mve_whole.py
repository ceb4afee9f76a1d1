"""Which layers the kernel for windows of one place takes: it gathers by offsets of 16 bits."""

import pytest

from stages.kernels import registry
from stages.models.operators import build
from stages.models.spec import OpModel
from tests.support.emitted import target_named
from tests.support.integer import integer_graph


@pytest.mark.parametrize(("channels", "reason"), [(1985, ""), (1986, "the window spans more than 65535 bytes")])
def test_offsets_of_a_window_have_16_bits(channels: int, reason: str) -> None:
    """Two rows of 17 pixels: the last one is 33 pixels behind the first."""
    options = {"op": "depthwise_conv2d", "shape": (2, 17, channels), "kernel": (2, 17), "padding": "valid"}
    graph = integer_graph(build(OpModel.model_validate(options)))
    target = target_named("cortex-m55")
    kernel = registry.kernels(target.kernels)["mve.depthwise_whole_s8"]
    assert kernel.why_not(graph.view(graph.layers[0]), target) == reason
