"""Generic kernels on the simulator, on both word sizes: random layers of every operator, in one program each."""

from __future__ import annotations

import pytest

from stages.kernels.registry import kernels
from tests.support import random_layers as layers
from tests.support.emitted import target_named
from tests.support.random_layers import Draw
from tests.support.spike_layers import SpikeCase, run_on_spike

MAKES = (
    *(layers.conv2d, layers.depthwise_conv2d, layers.fully_connected, layers.pool2d, layers.add, layers.mul),
    *(layers.activation, layers.requantize, layers.mean, layers.softmax, layers.l2_normalization),
    *(layers.concatenation, layers.move, layers.quantize, layers.dequantize),
)


@pytest.mark.parametrize("target", ["rv32-scalar", "rv64-scalar"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_every_operator(target: str, dtype: str) -> None:
    generic = kernels(["generic"])
    cases = []
    for make in MAKES:
        for seed in range(80, 83):
            draw = Draw(seed, dtype)
            view = make(draw)
            (kernel,) = (k for k in generic.values() if view.op.op in k.ops)
            inputs = [draw.array(x.shape, x.dtype) for x in view.inputs]
            cases.append(SpikeCase(f"{make.__name__} {seed}", kernel, view, inputs))
    assert {case.kernel.name for case in cases} == generic.keys()
    runs = run_on_spike(cases, target_named(target))
    assert [run.name for run in runs if run.differing] == []
    assert len(runs) == len(cases) and min(run.instructions for run in runs) > 0
