"""An accelerator among the kernels: taken, refused with sizes, named by rules."""

import pytest

from stages.backends.kernels import registry
from stages.ir.graph import LayerView
from stages.ir.graph.layer_rules import LayerMatch
from stages.support.messages.stage_error import StageError
from stages.tensorize import TensorizeConfig, TensorizeRule
from stages.tensorize.pass_context import PassContext
from tests.firmware.test_offload import with_toy
from tests.unit.offload.test_schedule import convolution


def setting(l1: int, kernel: str = "", **parameters: int) -> PassContext:
    rules = (TensorizeRule(match=LayerMatch(op="conv2d"), kernel=kernel),) if kernel else ()
    target = with_toy(l1, **parameters)
    return PassContext.of(target, TensorizeConfig(rules=rules), registry.kernels_of(target).values())


@pytest.fixture(scope="module")
def layer() -> LayerView:
    return convolution(False, (16, 16), (8, 16), 1)


def test_the_cheapest_is_taken_and_the_others_are_reported(layer: LayerView) -> None:
    quick, slow = setting(64 << 10).choose(layer, None), setting(64 << 10, macs_per_cycle=1).choose(layer, None)
    assert (quick.kernel.name, quick.cost_source) == ("toy", "modelled")
    assert {other.kernel for other in quick.alternatives if other.cost is not None} >= {"rvp.gemm_s8", "generic.conv2d"}
    assert slow.kernel.name != "toy"
    (refused,) = (other for other in slow.alternatives if other.kernel == "toy")
    assert refused.cost is not None and slow.cost is not None and refused.cost > slow.cost


def test_a_rule_names_it_or_another(layer: LayerView) -> None:
    assert setting(64 << 10, "toy", macs_per_cycle=1).choose(layer, None).kernel.name == "toy"
    assert setting(64 << 10, "rvp.gemm_s8").choose(layer, None).kernel.name == "rvp.gemm_s8"


def test_memory_that_no_tile_fits_is_reported_with_sizes(layer: LayerView) -> None:
    chosen = setting(256).choose(layer, None)
    (refused,) = (other for other in chosen.alternatives if other.kernel == "toy")
    # A row of 16 pixels and 4 channels: 3 rows of input, the row, weights and scales, sums.
    smallest = 3 * 16 * 8 + 16 * 4 + (4 * 72 + 12 * 4) + 16
    assert refused.reason == f"its smallest tile takes {smallest} bytes; l1 has 256"
    with pytest.raises(StageError, match=r"kernel toy of a tensorize rule cannot compute layer.*smallest tile"):
        setting(256, "toy").choose(layer, None)
