"""Which kernels are worth their bytes of ROM. Costs and bytes are what a test says."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from stages.backends.kernels.kernel import Kernel
from stages.count.firmware import joined
from stages.delivery.bench.networks import setting_of
from stages.ir.graph import Graph, LayerView
from stages.ir.graph.layer_rules import LayerMatch
from stages.tensorize import TensorizeConfig, TensorizeRule
from stages.tensorize.build import decide
from stages.tensorize.choices import Chosen
from stages.tensorize.costs import CallRom, KernelCall
from stages.tensorize.memory import ArenaBound
from stages.tensorize.pass_context import PassContext
from tests.support.counting import calls_of, costs_of, layer_graph
from tests.support.emitted import target_named

M55 = target_named("cortex-m55")


def layer(**options: object) -> list[KernelCall]:
    return calls_of(layer_graph(**options), M55)


CONVOLUTION = layer(op="conv2d", shape=(8, 8, 16), out_channels=16)
CONNECTED = layer(op="fully_connected", shape=(24,), out_channels=2)
GRAPH = joined([CONVOLUTION[0], CONNECTED[0]])
SLOW = 10_000_000

Code = Mapping[str, Mapping[str, int]]
SHARED: Code = {
    "mve.gemm_s8": {"gemm": 40_000, "rows": 5_000},
    "mve.dot_s8": {"rows": 5_000, "dot": 100},
    "arm_dsp.dot_s8": {"dsp": 5_000},
}
APART: Code = {**SHARED, "mve.dot_s8": {"other rows": 5_000, "dot": 100}}


def setting(mve: int, dsp: int, code: Code = SHARED, convolution: int = 90_000, **options: object) -> PassContext:
    """Instructions of two kernels for the second layer, and of one for the first; all others take ten million."""
    calls = (*CONVOLUTION, *CONNECTED)
    of = {"mve.gemm_s8": convolution, "mve.dot_s8": mve, "arm_dsp.dot_s8": dsp}
    costs = costs_of(calls, lambda call: of.get(call.kernel.name, SLOW))
    rom = {call.key: CallRom(0, code.get(call.kernel.name, {call.kernel.name: 40_000})) for call in calls}
    # Without bounds no kernel is taken since it is within a percent of the cheapest.
    exact = replace(costs, lower_bounds=False, rom=rom if code else {})
    made = setting_of(M55, TensorizeConfig.model_validate({"optimize_for": "speed"} | options))
    wanted = options.get("optimize_for", "balanced")
    return replace(made, config=made.config.model_copy(update={"optimize_for": wanted}), costs=exact)


def decided(one: PassContext, graph: Graph = GRAPH) -> Chosen:
    return decide(graph, one)[0]


def second(one: PassContext) -> str:
    """The kernel of the second layer."""
    first, kernel = (choice.kernel.name for _, choice in sorted(decided(one).choices.items()))
    assert first == "mve.gemm_s8"
    return kernel


def test_code_that_two_kernels_share_counts_once() -> None:
    """Of 50,000 bytes the cheaper kernel brings 5,000; the dearer one 100, as 5,000 are there for the first layer."""
    dearer = setting(15_000, 10_000)
    assert second(dearer) == "mve.dot_s8"
    assert second(setting(15_000, 10_000, APART)) == "arm_dsp.dot_s8"
    choice = decided(dearer).choices[1]
    assert choice.why == "50.0 % dearer than arm_dsp.dot_s8, for less ROM (counted)"
    assert next((one.kernel, one.cost) for one in choice.alternatives) == ("arm_dsp.dot_s8", 10_000)


@pytest.mark.parametrize(("more", "kernel"), [(21_000, "mve.dot_s8"), (25_000, "arm_dsp.dot_s8")])
def test_ten_percent_of_instructions_are_worth_five_of_bytes(more: int, kernel: str) -> None:
    """10.1 % more bytes (50,000 beside 45,396, weights among them) are worth 23.4 % more of 100,000 instructions."""
    assert second(setting(10_000 + more, 10_000)) == kernel


@pytest.mark.parametrize(("more", "kernel"), [(50_000, "mve.dot_s8"), (50_500, "arm_dsp.dot_s8")])
def test_a_network_takes_at_most_half_more_than_the_fastest_choice(more: int, kernel: str) -> None:
    """However small it would be otherwise."""
    assert second(setting(10_000 + more, 10_000, {**SHARED, "arm_dsp.dot_s8": {"dsp": 60_000}})) == kernel


def test_what_bytes_are_worth_is_the_objectives() -> None:
    assert second(setting(1_015_000, 10_000, optimize_for="rom")) == "mve.dot_s8"
    assert second(setting(10_300, 10_000, optimize_for="speed")) == "mve.dot_s8"
    assert second(setting(11_000, 10_000, optimize_for="speed")) == "arm_dsp.dot_s8"


def test_bytes_are_worth_little_where_an_operating_system_has_the_memory() -> None:
    one = setting(15_000, 10_000)
    hosted = one.target.model_copy(update={"memory": None})
    assert second(replace(one, target=hosted)) == "arm_dsp.dot_s8"


def test_a_rule_decides_by_itself() -> None:
    rule = TensorizeRule(match=LayerMatch(op="fully_connected"), kernel="arm_dsp.dot_s8")
    assert second(setting(10_100, 10_000, rules=(rule,))) == "arm_dsp.dot_s8"


def test_layers_together_leave_a_kernel_that_no_layer_leaves_alone() -> None:
    """As long as one of two layers has the kernel, its code is there, and the other only loses without it."""
    one = setting(10_400, 10_000)
    graph = joined([CONVOLUTION[0], CONNECTED[0], CONNECTED[0]])
    assert [choice.kernel.name for _, choice in sorted(decided(one, graph).choices.items())][1:] == ["mve.dot_s8"] * 2


def test_layers_on_an_uncounted_kernel_cost_the_code_of_its_counted_calls() -> None:
    """A call may take no code until a call of its kernel is counted."""
    one = setting(15_000, 10_000, APART)
    dot = next(call for call in CONNECTED if call.kernel.name == "mve.dot_s8")
    rom = {key: takes for key, takes in one.costs.rom.items() if key != dot.key}
    assert second(replace(one, costs=replace(one.costs, rom=rom))) == "mve.dot_s8"  # nothing is known: it may be small
    other = ("another layer", dot.variant)
    known = replace(one.costs, rom={**rom, other: CallRom(0, APART["mve.dot_s8"])})
    assert second(replace(one, costs=known)) == "arm_dsp.dot_s8"


@pytest.mark.parametrize(("elsewhere", "goes"), [(4096, True), (64, False)])
def test_more_scratch_is_no_matter_where_another_layer_needs_as_much(
    elsewhere: int, *, goes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The smaller kernel takes 512 bytes of scratch, the cheaper none; the other layer's takes more, or less."""
    wanted = {"mve.dot_s8": 512, "mve.gemm_s8": elsewhere}

    def needed(_self: ArenaBound, _view: LayerView, kernel: Kernel, _params: object) -> tuple[int, int]:
        return wanted.get(kernel.name, 0), 32

    monkeypatch.setattr(ArenaBound, "needed", needed)
    assert second(setting(15_000, 10_000)) == ("mve.dot_s8" if goes else "arm_dsp.dot_s8")


@pytest.mark.parametrize(
    ("in_place", "goes"),
    [({"arm_dsp.dot_s8"}, False), ({"arm_dsp.dot_s8", "mve.dot_s8"}, True), ({"mve.dot_s8"}, True)],
)
def test_a_kernel_stays_whose_output_overlays_its_input(
    in_place: set[str], *, goes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one would need room for both."""
    one = setting(15_000, 10_000)
    for kernel in {type(each) for each in one.kernels}:
        monkeypatch.setattr(kernel, "overlays", lambda self, view: self.name in in_place)
    assert second(one) == ("mve.dot_s8" if goes else "arm_dsp.dot_s8")
