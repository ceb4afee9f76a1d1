"""How many of the channels that can go do go, and that firmware without them is right."""

import json
from pathlib import Path

import numpy as np
import pytest

from stages.ir.graph import LayerView
from stages.ir.models.builder import ModelBuilder
from stages.ir.reference.interpreter import Reference, random_inputs
from stages.tensorize import TensorizeConfig
from stages.tensorize.channels import without_channels
from stages.tensorize.pass_context import PassContext
from tests.support.constant_channels import Drawn
from tests.support.emitted import run_emitted, target_named
from tests.support.integer import integer_graph
from tests.support.stages_run import run_stages


def two_convolutions(units: int, alive: int) -> bytes:
    """x -> 1x1 to `units` channels, of which `alive` are no constant -> 1x1 -> y."""
    rng, b = np.random.default_rng(1), ModelBuilder()
    values = rng.integers(1, 128, (units, 1, 1, 8)).astype(np.int8)
    values[alive:] = 0
    x = b.input("x", (1, 4, 4, 8), "int8", 0.05, 0)
    y = b.conv2d(x, values, np.zeros(units, np.int32), weight_scale=0.01, out=(0.05, 0), name="first")
    last = rng.integers(-127, 128, (3, 1, 1, units)).astype(np.int8)
    b.output(b.conv2d(y, last, np.zeros(3, np.int32), weight_scale=0.01, out=(0.2, 0), name="last"))
    return b.build()


@pytest.mark.parametrize(("alive", "step", "left"), [(5, 1, 5), (5, 8, 8), (9, 8, 16), (17, 16, 30), (0, 4, 4)])
def test_as_many_stay_as_cost_least(alive: int, step: int, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With kernels that take as long for one channel as for `step` of them, and a little less for more."""

    def cost(_self: PassContext, view: LayerView) -> float:
        channels = view.tensors["first"].shape[-1]
        return 1000.0 * -(-channels // step) - channels

    monkeypatch.setattr(PassContext, "cost", cost)
    setting = PassContext.of(target_named("host"), TensorizeConfig(), ())
    graph, rewrites = without_channels(integer_graph(two_convolutions(30, alive)), setting)
    assert graph.tensors["first"].shape[-1] == left
    assert [rewrite.layers for rewrite in rewrites] == ([("first",)] if left < 30 else [])


@pytest.mark.parametrize(("saved", "goes"), [(0.01, False), (0.03, True)])
def test_all_stay_where_little_is_promised(saved: float, goes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs are known to about two percent."""

    def cost(_self: PassContext, view: LayerView) -> float:
        return 1000.0 * (1 - saved * (view.tensors["first"].shape[-1] < 30))

    monkeypatch.setattr(PassContext, "cost", cost)
    given = integer_graph(two_convolutions(30, 5))
    graph, rewrites = without_channels(given, PassContext.of(target_named("host"), TensorizeConfig(), ()))
    assert (graph is not given, bool(rewrites)) == (goes, goes)


@pytest.mark.parametrize("repeated", [False, True])
def test_firmware_is_litert_s(tmp_path: Path, *, repeated: bool) -> None:
    target, fewer = target_named("host"), 0
    for seed in range(2):
        data = Drawn(100 + seed, repeated=repeated).build()
        made = run_stages(data, target, tmp_path / str(seed))
        reference = Reference(data)
        inputs = random_inputs(reference.info, seed)
        (found,) = run_emitted(made["emit"], target, [inputs])
        for ours, theirs in zip(found.outputs, reference.run(inputs), strict=True):
            np.testing.assert_array_equal(ours.reshape(theirs.shape), theirs)
        rewrites = json.loads((made["tensorize"] / "plan.json").read_text())["rewrites"]
        fewer += sum(not repeated or "repeat others" in rewrite["what"] for rewrite in rewrites)
    assert fewer


def test_a_recipe_can_have_all_of_them_computed(tmp_path: Path) -> None:
    for number, configs in enumerate(({}, {"tensorize": {"simplify": False}})):
        model = two_convolutions(24, 8)
        made = run_stages(model, "host", tmp_path / str(number), until="tensorize", configs=configs)
        found = json.loads((made["tensorize"] / "plan.json").read_text())["rewrites"]
        assert (found is None) == bool(number) and (number or len(found) == 1)
