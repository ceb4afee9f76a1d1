"""Drawn layers, and how far what is chosen is from the best."""

from collections.abc import Iterable
from itertools import islice

import pytest

from stages.backends.kernels import registry
from stages.backends.targets.spec import Target
from stages.count.counter import Counter
from stages.delivery.bench.choice_quality import TOLERANCE, rate_choices
from stages.delivery.bench.networks import setting_of
from stages.delivery.bench.sampled import described, sampled_layers
from stages.ir.graph import Graph
from stages.ir.models.operators import build
from stages.ir.models.spec import OpModel
from stages.tensorize import TensorizeConfig
from stages.tensorize.pass_context import PassContext
from tests.support.emitted import target_named
from tests.support.integer import integer_graph

RV64 = target_named("rv64-rvp")


def networks(specs: Iterable[OpModel], target: Target) -> list[tuple[str, Graph, PassContext]]:
    setting = setting_of(target, TensorizeConfig())
    return [(described(spec), integer_graph(build(spec)), setting) for spec in specs]


def test_what_is_chosen_is_near_the_best() -> None:
    """A few layers of each run's many (`doit bench suite=layers drawn=200`)."""
    found = rate_choices(networks(islice(sampled_layers(12, 20), 6), RV64), Counter(RV64, None, {}))
    assert all(one.best > 0 for one in found)
    assert [one for one in found if one.behind > TOLERANCE] == []


def test_a_wrong_choice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kernel whose estimate is off by more than it states."""
    for kernel in registry.kernels_of(RV64).values():
        if kernel.name.startswith("rvp."):
            monkeypatch.setattr(type(kernel), "cost", lambda *_: 1e9)
    (one,) = rate_choices(
        networks([OpModel(op="conv2d", shape=(4, 4, 8), out_channels=8)], RV64), Counter(RV64, None, {})
    )
    assert one.behind > 1 and one.calls[0].startswith("generic.conv2d") and one.best_calls[0].startswith("rvp.")
    assert one.name == "op: conv2d, shape: [4, 4, 8], out_channels: 8"
