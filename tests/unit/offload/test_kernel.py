"""An accelerator among the kernels: taken, refused with sizes, named by rules."""

from __future__ import annotations

import pytest

from stages.graph import Graph, LayerView
from stages.kernels import registry
from stages.messages.stage_error import StageError
from stages.options.layer_rules import LayerMatch
from stages.tensorize import TensorizeConfig, TensorizeRule
from stages.tensorize.setting import Setting
from tests.firmware.test_offload import with_toy
from tests.unit.offload.test_schedule import convolution


def setting(l1: int, kernel: str = "", **parameters: int) -> Setting:
    rules = (TensorizeRule(match=LayerMatch(op="conv2d"), kernel=kernel),) if kernel else ()
    target = with_toy(l1, **parameters)
    return Setting.of(target, TensorizeConfig(rules=rules), registry.kernels_of(target).values())


@pytest.fixture(scope="module")
def layer() -> LayerView:
    return convolution(False, (16, 16), (8, 16), 1)


def test_the_cheapest_is_taken_and_the_others_are_told(layer: LayerView) -> None:
    quick, slow = setting(64 << 10).choose(layer, None), setting(64 << 10, macs_per_cycle=1).choose(layer, None)
    assert (quick.kernel.name, quick.cost_source) == ("toy", "modelled")
    assert {other.kernel for other in quick.alternatives if other.cost is not None} >= {"rvp.gemm_s8", "generic.conv2d"}
    assert slow.kernel.name != "toy"
    (refused,) = (other for other in slow.alternatives if other.kernel == "toy")
    assert refused.cost is not None and slow.cost is not None and refused.cost > slow.cost


def test_a_rule_names_it_or_another(layer: LayerView) -> None:
    assert setting(64 << 10, "toy", macs_per_cycle=1).choose(layer, None).kernel.name == "toy"
    assert setting(64 << 10, "rvp.gemm_s8").choose(layer, None).kernel.name == "rvp.gemm_s8"


def test_memory_that_no_tile_fits_is_told_with_sizes(layer: LayerView) -> None:
    chosen = setting(256).choose(layer, None)
    (refused,) = (other for other in chosen.alternatives if other.kernel == "toy")
    # A row of 16 pixels and 4 channels: 3 rows of input, the row, weights and scales, sums.
    smallest = 3 * 16 * 8 + 16 * 4 + (4 * 72 + 12 * 4) + 16
    assert refused.reason == f"its smallest tile takes {smallest} bytes; l1 has 256"
    with pytest.raises(StageError, match=r"kernel toy of a tensorize rule cannot compute layer.*smallest tile"):
        setting(256, "toy").choose(layer, None)


def test_a_constant_that_is_data_is_refused(layer: LayerView) -> None:
    tensors = dict(layer.tensors)
    tensors["x"] = tensors["x"].model_copy(update={"constant": True})
    kernel = setting(64 << 10).offload
    assert kernel is not None
    view = Graph(tensors, [layer.layer], constants=dict(layer.arrays)).view(layer.layer)
    assert kernel.why_not(view, with_toy(64 << 10)) == "tensor x is a constant, which is read as data"
