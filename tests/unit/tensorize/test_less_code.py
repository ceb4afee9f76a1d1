"""Kernels that are hardly faster than what is there anyway are left out, and no others. Costs are what a test says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stages.bench.side_by_side import setting_of
from stages.count.call import KernelCall
from stages.count.firmware import joined
from stages.graph import Graph, LayerView
from stages.kernels.kernel import Kernel
from stages.options.layer_rules import LayerMatch
from stages.tensorize import TensorizeConfig, TensorizeRule
from stages.tensorize.build import decide
from stages.tensorize.choices import Chosen
from stages.tensorize.less_code import with_less_code
from stages.tensorize.memory import ArenaBound
from stages.tensorize.setting import Setting
from tests.support.counting import calls_of, costs_of, layer_graph
from tests.support.emitted import target_named

M55 = target_named("cortex-m55")


def layer(**options: object) -> list[KernelCall]:
    return calls_of(layer_graph(**options), M55)


CONVOLUTION = layer(op="conv2d", shape=(8, 8, 16), out_channels=16)
WIDE = layer(op="conv2d", shape=(3, 3, 80), out_channels=512, kernel=(3, 3))
CONNECTED = layer(op="fully_connected", shape=(24,), out_channels=2)


def network(convolution: list[KernelCall] = CONVOLUTION) -> Graph:
    return joined([convolution[0], CONNECTED[0]])


def setting(convolution: int, mve: int, dsp: int, **options: object) -> Setting:
    """All kernels but those that are named take ten million."""
    of = {"mve.gemm_s8": convolution, "mve.dot_s8": mve, "arm_dsp.dot_s8": dsp}
    costs = costs_of((*CONVOLUTION, *WIDE, *CONNECTED), lambda call: of.get(call.kernel.name, 10_000_000))
    exact = replace(costs, lower_bounds=False)  # no kernel is taken since it is within a percent of the cheapest
    return replace(setting_of(M55, TensorizeConfig.model_validate(options)), costs=exact)


def kernels(setting: Setting) -> tuple[str, str]:
    first, second = (choice.kernel.name for _, choice in sorted(decided(setting).choices.items()))
    return first, second


def decided(setting: Setting) -> Chosen:
    return decide(network(), setting)[0]


def test_code_that_other_layers_have_wins_where_it_is_within_a_hundredth() -> None:
    near = setting(5_000, 1009, 1000)
    assert kernels(near) == ("mve.gemm_s8", "mve.dot_s8")
    choice = decided(near).choices[1]
    assert choice.why == "0.9 % dearer than arm_dsp.dot_s8, whose code no other layer needs (counted)"
    assert choice.cost == 1009
    assert next((one.kernel, one.cost) for one in choice.alternatives) == ("arm_dsp.dot_s8", 1000)
    assert kernels(replace(near, less_code=False))[1] == "arm_dsp.dot_s8"
    assert kernels(setting(1_000, 1011, 1000))[1] == "arm_dsp.dot_s8"


def test_a_layer_that_is_nothing_beside_the_network_may_lose_more() -> None:
    assert kernels(setting(2_000, 15, 10))[1] == "mve.dot_s8"
    assert kernels(setting(2_000, 16, 10))[1] == "arm_dsp.dot_s8"


def test_code_is_worth_less_where_constants_are_most_of_rom() -> None:
    """Beside 374,856 bytes a kernel's 1,600 of code are 0.42 percent: worth 0.21 percent of the instructions."""
    for instructions, kernel in ((14, "mve.dot_s8"), (15, "arm_dsp.dot_s8")):
        choices = decide(network(WIDE), setting(2_000, instructions, 10))[0].choices
        assert choices[1].kernel.name == kernel


def test_a_rule_decides_by_itself() -> None:
    rule = TensorizeRule(match=LayerMatch(op="fully_connected"), kernel="arm_dsp.dot_s8")
    assert kernels(setting(5_000, 1009, 1000, rules=(rule,)))[1] == "arm_dsp.dot_s8"


def test_a_limit_of_the_arena_decides_by_itself() -> None:
    assert kernels(setting(5_000, 1009, 1000, arena_limit=1_000_000))[1] == "arm_dsp.dot_s8"


def test_nothing_goes_where_nothing_is_saved() -> None:
    """By itself the layer has no other's code to use."""
    one = setting(5_000, 1009, 1000)
    (choice,) = decide(joined([CONNECTED[0]]), one)[0].choices.values()
    assert choice.kernel.name == "arm_dsp.dot_s8" and choice.why.startswith("cheapest")


@pytest.mark.parametrize(("elsewhere", "goes"), [(4096, True), (64, False)])
def test_more_scratch_is_no_matter_where_another_layer_needs_as_much(
    elsewhere: int, *, goes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel that is there takes 512 bytes of scratch, the other none; the other layer's takes more, or less."""
    wanted = {"mve.dot_s8": 512, "mve.gemm_s8": elsewhere}

    def needed(_self: ArenaBound, _view: LayerView, kernel: Kernel, _params: object) -> tuple[int, int]:
        return wanted.get(kernel.name, 0), 32

    monkeypatch.setattr(ArenaBound, "needed", needed)
    assert kernels(setting(5_000, 1009, 1000))[1] == ("mve.dot_s8" if goes else "arm_dsp.dot_s8")


@pytest.mark.parametrize(("source", "goes"), [("counted", True), ("estimated", False)])
def test_a_hundredth_is_lost_only_where_costs_are_known(source: str, *, goes: bool) -> None:
    """Nine of a thousand instructions are more than a quarter of a percent of the network's, which takes 3,000."""
    near = setting(2_000, 1009, 1000)
    before = decided(replace(near, less_code=False))
    rivals = tuple(one.model_copy(update={"cost_source": source}) for one in before.choices[1].alternatives)
    for own, others in ((source, before.choices[1].alternatives), ("counted", rivals)):
        choice = replace(before.choices[1], cost_source=own, alternatives=others)
        after = with_less_code(before.graph, before.choices | {1: choice}, near)
        assert after[1].kernel.name == ("mve.dot_s8" if goes else "arm_dsp.dot_s8")


@pytest.mark.parametrize(
    ("in_place", "goes"),
    [({"arm_dsp.dot_s8"}, False), ({"arm_dsp.dot_s8", "mve.dot_s8"}, True), ({"mve.dot_s8"}, True)],
)
def test_a_kernel_stays_whose_output_overlays_its_input(
    in_place: set[str], *, goes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one would need room for both; asked about is the layer as each kernel sees it."""
    near = setting(5_000, 1009, 1000)
    before = decided(replace(near, less_code=False))
    seen = before.graph.view(before.graph.layers[1])

    def overlays(self: Kernel, view: LayerView) -> bool:
        return view is seen and self.name in in_place

    for kernel in {type(one) for one in near.kernels}:
        monkeypatch.setattr(kernel, "overlays", overlays)
        monkeypatch.setattr(kernel, "seen", lambda _self, _view: seen)
    after = with_less_code(before.graph, before.choices, near)
    assert after[1].kernel.name == ("mve.dot_s8" if goes else "arm_dsp.dot_s8")
