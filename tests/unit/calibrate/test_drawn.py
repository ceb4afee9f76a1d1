"""Drawn layers, and how far what is chosen is from the best."""

from pathlib import Path

import pytest
import yaml

from stages.calibrate.drawn import described, drawn
from stages.calibrate.judge import judge
from stages.models.spec import OpModel
from stages.tensorize import cost_table
from stages.tensorize.costs import CostTable, Price
from tests.support.emitted import target_named

ROOT = Path(__file__).resolve().parents[3]
RV64, M4 = target_named("rv64-rvp"), target_named("cortex-m4")


def test_the_same_seed_draws_the_same_layers() -> None:
    first = [*drawn(3, 300)]
    assert [*drawn(3, 300)] == first != [*drawn(4, 300)]
    kinds = {spec.op for spec in first}
    assert {"conv2d", "depthwise_conv2d", "fully_connected", "max_pool2d", "mul", "mean", "transpose"} <= kinds
    assert {"prelu", "batch_matmul", "lstm"} <= kinds
    assert {spec.op for spec in first if spec.dtype == "int16"} >= {"conv2d", "depthwise_conv2d", "fully_connected"}
    assert any(spec.groups > 1 for spec in first) and any(spec.depth_multiplier > 1 for spec in first)
    assert any(spec.dilation != (1, 1) for spec in first) and any(spec.out_channels == 1 for spec in first)
    assert any(spec.kernel == spec.shape[:2] != (1, 1) for spec in first if spec.op == "depthwise_conv2d")


def test_what_is_chosen_is_near_the_best() -> None:
    """A few layers of each run's many (`doit calibrate target=rv64-rvp drawn=200`)."""
    costs = CostTable.read(cost_table("rv64-rvp", ROOT))
    found = judge([*drawn(12, 8)], RV64, costs)
    assert len(found) >= 6 and all(one.best > 0 for one in found)
    near = [one for one in found if one.behind <= 0.05]
    assert len(near) >= len(found) - 1, found[:3]


def test_a_wrong_choice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = OpModel(op="conv2d", shape=(8, 8, 32), out_channels=32)
    price = CostTable.price

    def wrong(self: CostTable, kernel, view, params, target) -> Price:  # type: ignore[no-untyped-def]
        known = price(self, kernel, view, params, target)
        return Price(1, "fitted") if self.tuned is None and kernel.name.startswith("generic") else known

    monkeypatch.setattr(CostTable, "price", wrong)
    (one,) = judge([spec], RV64, CostTable.read(cost_table("rv64-rvp", ROOT)))
    (change,) = one.changes
    assert one.behind > 1 and change.startswith("conv2d: generic.conv2d") and " -> rvp." in change
    assert one.layer == described(spec) == "op: conv2d, shape: [8, 8, 32], out_channels: 32"


@pytest.mark.parametrize("op", ["depthwise_conv2d", "max_pool2d"])
def test_windows_along_the_only_column_are_judged_with_copies_of_the_row_they_may_be(op: str) -> None:
    """Which is the same memory as the column: a transform of it is measured without that."""
    (one,) = judge(
        [OpModel(op=op, shape=(12, 1, 16), kernel=(3, 1))], M4, CostTable.read(cost_table("cortex-m4", ROOT))
    )
    assert 0 < one.best <= one.chosen


def test_a_drawn_layer_is_printed_as_a_recipe_takes_it() -> None:
    for spec in drawn(7, 100):
        assert OpModel.model_validate(yaml.safe_load(f"{{{described(spec)}}}")) == spec
