"""What depthwise kernels of RISC-V P say they cost: near to what Spike counts, and right about which is cheapest."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from stages.calibrate.cases import cases
from stages.calibrate.measure import measure
from stages.models.operators import build
from stages.models.spec import OpModel
from stages.tensorize.costs import estimated
from tests.support.emitted import target_named
from tests.support.integer import integer_graph

NAMES = ("rvp.depthwise_s8", "rvp.depthwise_planes_s8")
LAYERS: tuple[dict[str, Any], ...] = (
    {"shape": (20, 20, 16), "kernel": (5, 5), "activation": "relu6"},
    {"shape": (32, 32, 3), "kernel": (3, 3), "depth_multiplier": 2},
    {"shape": (12, 12, 24), "kernel": (4, 4)},
    {"shape": (7, 7, 32), "kernel": (5, 5)},
    {"shape": (49, 1, 16), "kernel": (3, 1), "activation": "relu"},
)


@pytest.mark.parametrize("target_name", ["rv64-rvp", "rv32-rvp"])
def test_estimates_are_near_to_counts_and_choose_as_these(target_name: str) -> None:
    """A hundredth that a choice loses is nothing; estimates that are off by twentieths lose more."""
    target = target_named(target_name)
    specs = [OpModel.model_validate({"op": "depthwise_conv2d", **options}) for options in LAYERS]
    graphs = [integer_graph(build(spec)) for spec in specs]
    found = [one for one in cases(graphs, target) if one.kernel.name in NAMES]
    counts, said = defaultdict[str, dict[str, int]](dict), defaultdict[str, dict[str, float]](dict)
    for one, count in measure(found, target):
        estimate = estimated(one.kernel, one.view, one.params, target)
        assert estimate == pytest.approx(count, rel=0.06), (one.signature, one.kernel.name)
        counts[one.signature][one.kernel.name] = count
        said[one.signature][one.kernel.name] = estimate
    assert len(counts) >= len(LAYERS)
    for layer, of in counts.items():
        assert set(of) == set(NAMES)
        assert of[min(NAMES, key=said[layer].__getitem__)] <= 1.01 * min(of.values()), layer
