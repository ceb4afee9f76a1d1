"""Layers whose best kernel is least certain: which they are, and that a table keeps them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from stages.calibrate.cases import cases
from stages.calibrate.close import close, graph_of, graphs_of, wrong_of
from stages.calibrate.drawn import drawn
from stages.calibrate.table import Table
from stages.models.spec import OpModel
from stages.tensorize import cost_table
from stages.tensorize.costs import CostTable
from tests.support.emitted import target_named

ROOT = Path(__file__).resolve().parents[3]
RV64 = target_named("rv64-rvp")
COSTS = CostTable.read(cost_table("rv64-rvp", ROOT))
MEASURED = OpModel(op="conv2d", shape=(8, 8, 16), out_channels=16)  # of the grid
OTHER = OpModel(op="conv2d", shape=(9, 11, 20), out_channels=17)


def test_what_is_measured_leaves_no_doubt() -> None:
    assert close([MEASURED, OTHER], RV64, COSTS, 5) == [OTHER]


def test_contradicting_options_and_layers_without_a_choice_are_left_out() -> None:
    contradiction = OpModel(op="conv2d", shape=(2, 2, 8), out_channels=8, kernel=(3, 3), padding="valid")
    assert graph_of(contradiction) is None
    assert close([contradiction], RV64, COSTS, 5) == []


def test_the_least_certain_are_taken_and_few_of_one_kind() -> None:
    specs = [*drawn(7, 60)]
    few, more = (close(specs, RV64, COSTS, count) for count in (4, 12))
    assert len(few) == 4 and len(more) == 12 and more[:4] == few
    assert len({spec.model_dump_json() for spec in more}) == 12
    alike = [OTHER.model_copy(update={"out_channels": 17 + number}) for number in range(12)]
    assert len(close(alike, RV64, COSTS, 12)) < 12


def test_models_that_say_more_of_a_rival_are_less_in_doubt() -> None:
    """Of two equally near prices that counts as closer which lies further from what was measured."""
    near = OTHER.model_copy(update={"shape": (8, 8, 16), "out_channels": 17})
    far = OTHER.model_copy(update={"shape": (3, 40, 700), "out_channels": 9})
    flat = replace(COSTS, measured={}, factors={name: {"call": 100.0} for name in COSTS.factors})
    assert close([near, far], RV64, flat, 1) == [far]


def test_a_table_keeps_them_and_they_are_measured_with_it(tmp_path: Path) -> None:
    table = Table.read(cost_table("rv64-rvp", ROOT), RV64)
    options = OTHER.model_dump(mode="json", exclude_unset=True)
    table.close = [options]
    (tmp_path / "rv64-rvp.json").write_text(table.text(RV64))
    again = Table.read(tmp_path / "rv64-rvp.json", RV64)
    assert again.close == [options] == json.loads((tmp_path / "rv64-rvp.json").read_text())["close"]
    (graph,) = graphs_of(again.close)
    assert again.missing(cases([graph], RV64))


def test_wrong_choices_are_counted() -> None:
    offered, table = cases(graphs_of([OTHER.model_dump(mode="json", exclude_unset=True)]), RV64), Table("rv64-rvp")
    for case in offered:
        table.add(case, 1000)
    assert wrong_of(offered, table, RV64, COSTS) == 0
    prices = [(COSTS.price(case.kernel, case.view, case.params, RV64).cost or 0, case) for case in offered]
    taken = min(prices, key=lambda one: one[0])[1]
    table.add(taken, 1040)
    assert wrong_of(offered, table, RV64, COSTS) == 0
    table.add(taken, 1060)
    assert wrong_of(offered, table, RV64, COSTS) == 1
