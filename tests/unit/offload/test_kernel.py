"""An accelerator among the kernels: taken, refused with sizes, named by rules."""

from typing import Any

import pytest

from stages.backends.kernels import registry
from stages.ir.graph import LayerView, Layout
from stages.ir.graph.layer_rules import LayerMatch
from stages.support.messages.stage_error import StageError
from stages.tensorize import TensorizeConfig, TensorizeRule
from stages.tensorize.pass_context import PassContext
from tests.firmware.test_offload import with_toy
from tests.support.toy import Toy
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


def test_tiles_are_sought_once_for_layers_that_an_accelerator_cannot_tell_apart(layer: LayerView) -> None:
    kernel = setting(64 << 10).offload
    assert kernel is not None
    tensors = {name: tensor.model_copy(update={"name": name}) for name, tensor in layer.tensors.items()}
    other = LayerView(layer.layer.model_copy(update={"index": 3, "name": "other"}), tensors, layer.arrays)
    assert kernel.options(other) is kernel.options(layer)
    for role in layer.layer.constants:  # the toy does not say what it looks at, so all counts
        changed = {**layer.arrays, layer.layer.constants[role]: layer.constant(role) // 2}
        assert kernel.options(LayerView(layer.layer, layer.tensors, changed)) is not kernel.options(layer)
    op = layer.op.model_copy(update={"input_zero_point": 9})
    moved = LayerView(layer.layer.model_copy(update={"op": op}), layer.tensors, layer.arrays)
    assert kernel.options(moved) is not kernel.options(layer)


def test_memory_that_no_tile_fits_is_reported_with_sizes(layer: LayerView) -> None:
    chosen = setting(256).choose(layer, None)
    (refused,) = (other for other in chosen.alternatives if other.kernel == "toy")
    # A row of 16 pixels and 4 channels: 3 rows of input, the row, weights and scales, sums.
    smallest = 3 * 16 * 8 + 16 * 4 + (4 * 72 + 12 * 4) + 16
    assert refused.reason == f"its smallest tile takes {smallest} bytes; l1 has 256"
    with pytest.raises(StageError, match=r"kernel toy of a tensorize rule cannot compute layer.*smallest tile"):
        setting(256, "toy").choose(layer, None)


def windowed(layer: LayerView, layout: str = "", **changed: Any) -> LayerView:
    op = layer.op.model_copy(update=changed)
    tensors = {name: one.model_copy(update={"layout": Layout(layout)}) for name, one in layer.tensors.items()}
    return LayerView(layer.layer.model_copy(update={"op": op}), tensors, layer.arrays)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"dilation": (2, 1)}, "its windows have taps 2x1 apart; gathering needs a dilation of 1"),
        ({"groups": 2}, "it has 2 groups; gathering needs windows of all channels"),
        ({"layout": "NCHW4c"}, "tensor x is NCHW4c; gathering needs NHWC"),
    ],
)
def test_windows_that_transfers_do_not_gather_are_refused(
    layer: LayerView, changed: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Toy, "reads_windows", lambda *_: True)
    monkeypatch.setattr(Toy, "why_not", lambda *_: "")
    target = with_toy(64 << 10)
    kernel = setting(64 << 10).offload
    assert kernel is not None
    assert kernel.why_not_layer(windowed(layer), target) == ""
    assert kernel.why_not_layer(windowed(layer, **changed), target) == reason


def test_a_reason_that_no_layout_mends_is_the_one_that_is_reported(layer: LayerView) -> None:
    kernel, target = setting(64 << 10).offload, with_toy(64 << 10)
    assert kernel is not None
    assert kernel.why_not(windowed(layer, "NCHW4c"), target) == "tensor x is NCHW4c; this kernel is for NHWC"
    told = kernel.why_not(windowed(layer, "NCHW4c", groups=2), target)
    assert told == "it has no groups and no multipliers of channels"
