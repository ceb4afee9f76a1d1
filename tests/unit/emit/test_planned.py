"""Buffers that an accelerator's plan places: in its memory, where no rule moves them and no others come."""

from typing import Any

import numpy as np
import pytest

from stages.backends.targets.memory_rules import MemoryRule
from stages.emit.placement import Placer
from stages.ir.graph.layer_rules import LayerMatch
from stages.lower.arena import liveness
from stages.lower.arena.rules import Contents
from stages.support.messages.stage_error import StageError
from tests.firmware.test_offload import with_toy
from tests.support.kernels.mini import mini_graph


def placed(*rules: MemoryRule, l1: int = 64 << 10) -> dict[str, list[str]]:
    """Names of buffers by region, where the first layer's output and its scratch are planned into L1."""
    graph = mini_graph(units=(6, 5))
    scratch = {0: {"sums": 256}}
    contents = Contents(graph, liveness(graph, scratch), scratch, {})
    planned = {"l1": frozenset({graph.layers[0].outputs[0], "scratch:0:sums"})}
    constants: dict[str, np.ndarray] = {}
    made: Any = Placer(contents, constants, frozenset(), 16, with_toy(l1), rules, planned).place()
    return {arena.region: sorted(buffer.name for buffer in arena.plan.buffers) for arena in made.arenas}


def test_what_is_planned_lies_there_and_nothing_else_does() -> None:
    found = placed()
    graph = mini_graph(units=(6, 5))
    assert found["l1"] == sorted([graph.layers[0].outputs[0], "scratch:0:sums"])
    assert graph.inputs[0] in found["ram"] and graph.outputs[0] in found["ram"]


@pytest.mark.parametrize(("part", "region"), [("scratch", "ram"), ("tensors", "l1")])
def test_a_rule_that_says_otherwise_is_refused(part: Any, region: str) -> None:
    rule = MemoryRule(match=LayerMatch(), part=part, region=region)
    with pytest.raises(StageError, match=r"memory rule 1 cannot put .* is planned with the accelerator's layers"):
        placed(rule)


def test_a_plan_that_does_not_fit_is_reported_with_sizes() -> None:
    with pytest.raises(StageError, match="does not fit the target's memory"):
        placed(l1=256)
