"""What is measured so that a network's kernels are right, and what is not. Kernels take what a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import isfinite, log
from pathlib import Path

import pytest

from stages.calibrate.cases import Case, Room, cases
from stages.calibrate.close import graph_of
from stages.calibrate.doubt import DoubtedCosts, call_of
from stages.calibrate.measure import joined
from stages.calibrate.settle import doubted, expected, settle
from stages.calibrate.tuning import setting_for
from stages.graph import Graph
from stages.kernels import registry
from stages.models.spec import OpModel
from stages.options.layer_rules import LayerMatch
from stages.tensorize import TensorizeConfig, TensorizeRule, cost_table
from stages.tensorize.build import decide
from stages.tensorize.costs import CostTable, signature
from stages.tensorize.setting import Setting
from tests.support.emitted import target_named

ROOT = Path(__file__).resolve().parents[3]
RV64 = target_named("rv64-rvp")
COSTS = CostTable.read(cost_table("rv64-rvp", ROOT))
MEASURED = OpModel(op="conv2d", shape=(8, 8, 16), out_channels=16)  # of the grid
LARGE = OpModel(op="conv2d", shape=(96, 96, 32), out_channels=64, kernel=(3, 3))
OPEN = OpModel(op="conv2d", shape=(9, 11, 12), out_channels=17, kernel=(2, 3))


def graph(spec: OpModel) -> Graph:
    found = graph_of(spec)
    assert found is not None
    return found


def setting(costs: CostTable | None = COSTS, **options: object) -> Setting:
    return setting_for(RV64, TensorizeConfig.model_validate(options), costs, None)


class Simulator:
    """Tells for each case what `takes` says, and notes what it was asked in each round."""

    def __init__(self, takes: Callable[[Case], int]) -> None:
        self.takes = takes
        self.rounds: list[list[Case]] = []

    def __call__(self, cases: Sequence[Case]) -> Iterator[tuple[Case, int]]:
        self.rounds.append([*cases])
        yield from ((case, self.takes(case)) for case in cases)

    @property
    def asked(self) -> set[str]:
        return {case.variant for cases in self.rounds for case in cases}


def price(case: Case) -> int:
    return round(COSTS.price(case.kernel, case.view, case.params, RV64).cost or 0)


def chosen(spec: OpModel, one: Setting) -> tuple[str, str, float | None]:
    (choice,) = decide(graph(spec), one)[0].choices.values()
    return choice.kernel.name, choice.cost_source, choice.cost


def test_what_the_table_has_is_not_measured() -> None:
    nobody = Simulator(price)
    assert settle(graph(MEASURED), setting(), nobody) == {} and nobody.rounds == []


def test_what_is_open_is_measured_until_the_choice_is_sure_and_nothing_hopeless_is() -> None:
    before = chosen(OPEN, setting())
    assert before[1] == "fitted"

    def worse(case: Case) -> int:  # what was chosen takes more than was thought, all else what was thought
        return round(price(case) * (1.15 if case.kernel.name == before[0] else 1))

    simulator = Simulator(worse)
    figures = settle(graph(OPEN), setting(), simulator)
    asked = [call_of(one.kernel, one.view, one.params) for cases in simulator.rounds for one in cases]
    assert len(asked) == len({*asked}) == sum(map(len, figures.values())) >= 2
    assert "generic.conv2d" not in {name.split(" ")[0] for name in simulator.asked}
    settled = setting(replace(COSTS, settled=figures))
    after = chosen(OPEN, settled)
    one = graph(OPEN)
    assert after[1] == "measured" and after[2] == min(figures[signature(one.view(one.layers[0]))].values())
    assert doubted(graph(OPEN), settled).calls == {}


def test_what_is_not_measured_after_all_counts_as_before() -> None:
    before = chosen(OPEN, setting())
    rounds: list[int] = []

    def measured(cases: Sequence[Case]) -> Iterator[tuple[Case, int]]:
        rounds.append(len(cases))
        yield from ((case, 10**9) for case in cases if case.kernel.name != before[0])

    figures = settle(graph(OPEN), setting(), measured)
    assert rounds and all(rounds)
    assert chosen(OPEN, setting(replace(COSTS, settled=figures)))[::2] == before[::2]


def test_layers_that_the_memory_does_not_hold_stay_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stages.calibrate.settle.room_of", lambda target: Room(100, 100))
    simulator = Simulator(price)
    assert settle(graph(OPEN), setting(), simulator) == {}
    assert not simulator.asked


def test_a_rule_leaves_nothing_to_measure_but_what_it_leaves_open() -> None:
    rule = TensorizeRule(match=LayerMatch(), kernel="rvp.gemm_s8", params={"mr": 4})
    simulator = Simulator(price)
    assert settle(graph(OPEN), setting(rules=(rule,)), simulator) == {}
    settle(graph(OPEN), setting(rules=(rule.model_copy(update={"params": {}}),)), simulator)
    assert simulator.asked and all(name.startswith("rvp.gemm_s8 ") for name in simulator.asked)


def test_without_a_table_the_kernels_own_words_are_doubted_most() -> None:
    simulator = Simulator(price)
    figures = settle(graph(MEASURED), setting(None), simulator)
    assert chosen(MEASURED, setting(CostTable(settled=figures)))[1] == "measured"


@pytest.mark.parametrize("stated", [None, float("inf"), float("nan")])
def test_a_layer_whose_only_kernel_states_no_costs_changes_nothing_of_what_is_in_doubt(
    monkeypatch: pytest.MonkeyPatch, stated: float | None
) -> None:
    (alone,) = cases([graph(OpModel(op="softmax", shape=(40,)))], RV64)
    both = joined([cases([graph(OPEN)], RV64)[0], alone])
    wanted = setting(None, optimize_for="rom")
    before = doubted(both, wanted).calls

    def cost(*_: object) -> float:
        if stated is None:
            raise LookupError
        return stated

    monkeypatch.setattr(type(alone.kernel), "cost", cost)
    assert doubted(both, wanted).calls.keys() == before.keys() and before
    costs = DoubtedCosts.of(CostTable(), frozenset(), frozenset())
    least, most = costs.bounds(alone.kernel, alone.view, alone.params, RV64) or (0, 0)
    assert 0 == least < most and isfinite(most)


def test_doubt_grows_with_the_distance_from_what_was_measured() -> None:
    def width(spec: OpModel, costs: CostTable) -> float:
        one = graph(spec)
        view, kernel = one.view(one.layers[0]), registry.kernels_of(RV64)["rvp.gemm_s8"]
        (params, *_) = kernel.candidates(view, RV64)
        bounds = DoubtedCosts.of(costs, frozenset(), frozenset()).bounds(kernel, view, params, RV64)
        return 0.0 if bounds is None else log(bounds[1] / bounds[0])

    far = OpModel(op="conv2d", shape=(3, 40, 700), out_channels=9)
    most = width(OPEN, CostTable())
    assert 0 == width(MEASURED, COSTS) < width(OPEN, COSTS) < width(far, COSTS) <= most == pytest.approx(1.4)


def test_what_is_little_beside_the_network_is_not_worth_measuring() -> None:
    """Of a thousandth of the instructions it stays estimated; by itself, or by who wants to be sure, it is measured."""
    (open_case, *_), (large, *_) = (cases([graph(spec)], RV64) for spec in (OPEN, LARGE))
    both = joined([open_case, large])
    known = replace(COSTS, settled=settle(graph(LARGE), setting(measure="close"), Simulator(price)))

    def asked(one: Graph, measure: str) -> bool:
        simulator = Simulator(price)
        settle(one, setting(known, measure=measure), simulator)
        return open_case.signature in {case.signature for group in simulator.rounds for case in group}

    assert [asked(both, "worth"), asked(both, "close"), asked(graph(OPEN), "worth")] == [False, True, True]


def test_of_what_is_open_the_least_stays_as_long_as_it_is_a_hundredth() -> None:
    found = doubted(graph(OPEN), setting())
    assert found.little(0.0) == {}
    widths = sorted(one.width for one in found.calls.values())
    assert sorted(found.little(sum(widths[:2]) + 1e-6).values()) == widths[:2]
    assert all(one.width > 0 for one in found.calls.values())


def test_what_may_be_gained_falls_as_more_is_likely_lost() -> None:
    """Half the normal distribution's mean where both are alike: phi(0) of a deviation."""
    assert expected(0.0, 2.0) == pytest.approx(0.4)
    assert expected(1.0, 1.0) == pytest.approx(0.0833, rel=0.02)
    assert expected(2.0, -2.0) == 0 and expected(0.5, 1.0) < expected(0.1, 1.0)
