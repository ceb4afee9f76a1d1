"""The recipe's bound on the arena: what counts, and which kernel it leaves."""

from typing import Any

import pytest

from stages.base import StageError
from stages.graph import LayerView
from stages.kernels.kernel import Kernel
from stages.tensorize import LayerMatch, TensorizeConfig, TensorizeRule
from stages.tensorize.build import tensorize_graph
from stages.tensorize.costs import CostTable
from stages.tensorize.memory import ArenaBound, scratch_bytes
from stages.tensorize.select import choose
from tests.support.emitted import target_named
from tests.support.kernels.mini import MiniGemm, MiniParams, PlainGemm, mini_graph

HOST = target_named("host")
# The first layer reads 8x12 bytes, copies them into scratch, and writes 8x6.
TENSORS, SCRATCH = 8 * 12 + 8 * 6, 8 * 12


def view() -> LayerView:
    graph = mini_graph()
    return graph.view(graph.layers[0])


def bound(limit: int) -> ArenaBound:
    return ArenaBound(mini_graph(), HOST, limit)


def test_scratch_is_what_lowering_leaves() -> None:
    assert scratch_bytes(view(), MiniGemm(), MiniParams(), HOST) == SCRATCH


def test_tensors_and_scratch_together_count() -> None:
    assert bound(TENSORS + SCRATCH).why_not(view(), MiniGemm(), MiniParams()) == ""
    reason = bound(TENSORS + SCRATCH - 1).why_not(view(), MiniGemm(), MiniParams())
    assert reason == "96 bytes of scratch and 144 of tensors exceed the arena's limit of 239"


class Large(ArenaBound):
    """Finds that one kernel needs too much."""

    def __init__(self, *kernels: str) -> None:
        super().__init__(mini_graph(), HOST, 0)
        self._kernels = kernels

    def why_not(self, view: LayerView, kernel: Kernel, params: Any) -> str:
        return "too large" if kernel.name in self._kernels else ""


def test_a_kernel_above_the_bound_is_passed_over_and_listed_with_the_reason() -> None:
    choice = choose(view(), HOST, [MiniGemm(), PlainGemm()], [], CostTable(), Large("mini.gemm"))
    assert choice.kernel.name == "mini.plain"
    assert [(other.kernel, other.reason) for other in choice.alternatives] == [("mini.gemm", "too large")]


def test_a_rule_cannot_go_above_the_bound() -> None:
    rule = TensorizeRule(match=LayerMatch(), kernel="mini.gemm")
    with pytest.raises(StageError) as caught:
        choose(view(), HOST, [MiniGemm(), PlainGemm()], [rule], CostTable(), Large("mini.gemm"))
    assert str(caught.value).splitlines() == [
        "no kernel for layer 0 (fully_connected dense_0, input 8x12 int8) keeps to the recipe's memory.arena_limit",
        "mini.gemm: too large",
    ]


def test_no_kernel_is_left() -> None:
    with pytest.raises(StageError, match=r"layer 0 \(fully_connected dense_0.*memory\.arena_limit\n.*limit of 100"):
        tensorize_graph(mini_graph(), HOST, TensorizeConfig(arena_limit=100), [MiniGemm()])
    plan = tensorize_graph(mini_graph(), HOST, TensorizeConfig(arena_limit=TENSORS + SCRATCH), [MiniGemm()]).plan
    assert [layer.kernel for layer in plan.layers] == ["mini.gemm", "mini.gemm"]
