"""The recipe's bound on the arena: what counts, and which kernel it leaves."""

from typing import Any

import pytest

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.ir.graph.layer_rules import LayerMatch
from stages.tensorize import TensorizeConfig, TensorizeRule
from stages.tensorize.build import tensorize_graph
from stages.tensorize.costs import Costs
from stages.tensorize.lowering import Lowerings
from stages.tensorize.memory import ArenaBound
from stages.tensorize.select import ExceedsLimit, choose
from tests.support.emitted import target_named
from tests.support.kernels.mini import MiniGemm, MiniParams, PlainGemm, mini_graph

HOST = target_named("host")
# The first layer reads 8x12 bytes, copies them into scratch, and writes 8x6.
TENSORS, SCRATCH = 8 * 12 + 8 * 6, 8 * 12


def view() -> LayerView:
    graph = mini_graph()
    return graph.view(graph.layers[0])


def bound(limit: int) -> ArenaBound:
    return ArenaBound(mini_graph(), limit, Lowerings(HOST))


class Large(ArenaBound):
    """Finds that one kernel needs too much."""

    def __init__(self, *kernels: str) -> None:
        super().__init__(mini_graph(), 0, Lowerings(HOST))
        self._kernels = kernels

    def why_not(self, view: LayerView, kernel: Kernel, params: Any) -> str:
        return "too large" if kernel.name in self._kernels else ""


class Tuned(MiniGemm):
    name = "mini.tuned"

    def candidates(self, view: LayerView, target: Target) -> tuple[MiniParams, ...]:
        return (MiniParams(), MiniParams(rows=2))


def test_the_parameters_that_do_not_fit_are_distinguished_and_a_rule_says_that_it_left_them() -> None:
    rule = TensorizeRule(match=LayerMatch(), kernel="mini.tuned")
    with pytest.raises(ExceedsLimit):
        choose(view(), HOST, [Tuned()], [rule], Costs(), Large("mini.tuned"))

    class Rows(Large):
        def why_not(self, view: LayerView, kernel: Kernel, params: Any) -> str:
            return "too large" if params.rows == 4 else ""

    choice = choose(view(), HOST, [Tuned()], [rule], Costs(), Rows())
    assert choice.params.rows == 2
    assert choice.why == "rule 1 of the recipe, with its cheapest parameters that keep to the arena's limit"
    assert choice.instead == "mini.tuned rows=2 instead of mini.tuned rows=4"
    # Of several that do not fit the cheapest is named.
    choice = choose(view(), HOST, [PlainGemm(), MiniGemm(), Tuned()], [], Costs(), Large("mini.gemm", "mini.tuned"))
    assert choice.instead == "mini.plain rows=4 instead of mini.gemm rows=4"


class NoScratch(MiniGemm):
    """Dearer than MiniGemm, but without its scratch; what it computes is not looked at."""

    name = "mini.direct"
    sources = ()
    headers = ()

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from tvm.script import tirx as T

        m, k, n = view.op.batch, view.op.depth, view.op.units

        @T.prim_func(s_tir=True)
        def workload(
            x: T.Buffer((m, k), "int8"),
            w: T.Buffer((n, k), "int8"),
            b: T.Buffer((n,), "int32"),
            y: T.Buffer((m, n), "int8"),
        ):
            for i, j in T.grid(m, n):
                with T.sblock("out"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vi, 0] + w[vj, 0] + T.Cast("int8", b[vj])

        return Lowering(workload, ("input:0", "constant:weights", "constant:bias", "output:0"))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return 9.0 * view.op.batch * view.op.depth * view.op.units


def test_the_plan_warns_of_layers_that_lost_their_cheapest_kernel() -> None:
    def warnings(limit: int | None, units: int = 5) -> tuple[str, ...]:
        graph, config = mini_graph(units=(6, units)), TensorizeConfig(arena_limit=limit, streaming=False)
        return tensorize_graph(graph, HOST, config, [MiniGemm(), NoScratch()]).plan.warnings

    first = "layer 0 (fully_connected dense_0): mini.direct rows=4 instead of mini.gemm rows=4"
    assert warnings(None) == warnings(TENSORS + SCRATCH) == ()
    assert warnings(TENSORS + SCRATCH - 1) == (f"arena_limit excludes the cheapest kernel of {first}",)
    many = f"arena_limit excludes the cheapest kernel of 2 layers, the first is {first}"
    assert warnings(8 * (6 + 20), units=20) == (many,)


def test_a_layer_without_a_kernel_within_the_limit_takes_the_smallest() -> None:
    config = TensorizeConfig(arena_limit=100, streaming=False)
    plan = tensorize_graph(mini_graph(), HOST, config, [MiniGemm(), NoScratch()]).plan
    assert [layer.kernel for layer in plan.layers] == ["mini.direct", "mini.gemm"]  # the first needs the whole arena
