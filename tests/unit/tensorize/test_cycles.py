"""`optimize_for: cycles`: kernels by estimated cycles of the target's timing model, of a board with its wait states."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stages.base import StageError
from stages.graph import Graph
from stages.kernels import registry
from stages.kernels.digest import kernel_digest
from stages.models.operators import build
from stages.models.spec import OpModel
from stages.targets.load import load_target, load_targets
from stages.targets.spec import Target
from stages.tensorize import STAGE, TensorizeConfig, cost_table, cycle_files, cycle_table
from stages.tensorize.build import decide
from stages.tensorize.choices import Chosen
from stages.tensorize.costs import CostTable, Price, signature
from stages.tensorize.cycles import CycleTable, cycle_tables, names_of, read_cycles, timing_digest
from stages.tensorize.setting import Setting
from tests.support.emitted import ROOT
from tests.support.integer import integer_graph
from tests.support.kernels.mini import MiniGemm, MiniParams, mini_graph

CYCLES = TensorizeConfig(optimize_for="cycles")
BOARD, CORE = load_target("nucleo-l4r5zi"), load_target("cortex-m4")
TIMED = [one for one in load_targets().values() if one.is_timed]
# The pointwise convolutions of keyword-spotting.
POINTWISE = {"op": "conv2d", "shape": (25, 5, 64), "out_channels": 64}
KERNEL = MiniGemm()


def graph_of(**options: Any) -> Graph:
    return integer_graph(build(OpModel.model_validate(options)))


def costs_of(target: Target, config: TensorizeConfig) -> CostTable:
    costs = CostTable.read(cost_table(target.core, ROOT))
    if config.optimize_for != "cycles":
        return costs
    cycles, doubt = cycle_tables(STAGE.option_files(config, target, ROOT), target)
    assert not doubt, doubt
    # Whether a kernel has changed since is no question here, and others change them.
    digests = {name: kernel_digest(one) for name, one in registry.kernels_of(target).items()}
    return replace(costs, cycles=replace(cycles, digests=digests))


def decided(graph: Graph, target: Target, config: TensorizeConfig) -> Chosen:
    kernels = registry.kernels_of(target).values()
    return decide(graph, Setting.of(target, config, kernels, costs_of(target, config)))[0]


def table(*rows: tuple[str, str, int, int], digest: str = "") -> CycleTable:
    measured: dict[str, dict[str, tuple[int, int]]] = {}
    for text, name, instructions, cycles in rows:
        measured.setdefault(text, {})[name] = (instructions, cycles)
    return CycleTable("made up", {KERNEL.name: digest or kernel_digest(KERNEL)}, measured)


def price(cycles: CycleTable | None, depth: int = 12) -> Price:
    graph = mini_graph(depth=depth)
    view = graph.view(graph.layers[0])
    return CostTable(cycles=cycles).price(KERNEL, view, MiniParams(), load_target("host"))


def text_of(depth: int = 12) -> str:
    graph = mini_graph(depth=depth)
    return signature(graph.view(graph.layers[0]))


def test_cycles_are_instructions_times_what_one_takes() -> None:
    name, instructions = "mini.gemm rows=4", price(None).cost
    assert instructions is not None and price(None).source == "estimated"
    exact = table((text_of(), name, 100, 230))
    assert price(exact) == Price(230, "measured")
    near = price(exact, depth=16)
    assert near.source == "estimated" and near.cost == pytest.approx(2.3 * (price(None, depth=16).cost or 0), rel=0.01)
    assert price(CycleTable()).cost == instructions  # nothing measured: instructions decide


def test_layers_alike_count_most_and_other_versions_as_the_mean_of_all() -> None:
    name = "mini.gemm rows=4"
    both = ((text_of(depth=8), name, 100, 100), (text_of(depth=512), name, 100, 400))
    rate = table(*both).per_instruction
    assert rate(KERNEL, name, text_of(depth=8)) < 1.3 < 1.7 < rate(KERNEL, name, text_of(depth=64)) < 2.4
    assert rate(KERNEL, name, text_of(depth=512)) > 3
    assert rate(KERNEL, "mini.gemm rows=2", text_of(depth=8)) == pytest.approx(2)  # other parameters: the kernel's mean
    old = table(*both, digest="0" * 16)
    assert old.outdated(KERNEL) and old.per_instruction(KERNEL, name, text_of(depth=8)) == pytest.approx(2)


def test_what_takes_fewer_cycles_is_chosen_though_it_takes_more_instructions() -> None:
    """mr=3 needs fewer instructions than mr=4; its longer loop leaves the 1 KB cache of the board more often."""
    graph = graph_of(**POINTWISE)
    found = {
        (target.name, wanted): next(iter(decided(graph, target, TensorizeConfig(optimize_for=wanted)).choices.values()))
        for target in (CORE, BOARD)
        for wanted in ("speed", "cycles")
    }
    speed, cycles = found["nucleo-l4r5zi", "speed"], found["nucleo-l4r5zi", "cycles"]
    assert (speed.kernel.name, cycles.kernel.name) == ("arm_dsp.gemm_s8", "arm_dsp.gemm_s8")
    assert speed.params != cycles.params
    assert "fewest cycles of" in cycles.why and "cheapest of" in speed.why
    other = next(one for one in cycles.alternatives if one.params == speed.params.model_dump() and one.cost)
    assert other.cost is not None and cycles.cost is not None and speed.cost is not None
    assert speed.cost < cycles.cost < other.cost
    assert found["cortex-m4", "speed"].params == speed.params  # instructions are the core's, whatever the board


def test_constructed_rates_turn_the_choice() -> None:
    graph = graph_of(**POINTWISE)
    plain = costs_of(CORE, TensorizeConfig())
    kernels = registry.kernels_of(CORE)
    digests = {name: kernel_digest(one) for name, one in kernels.items()}
    (first,) = decided(graph, CORE, TensorizeConfig()).choices.values()
    rows = {text: dict.fromkeys(row, (100, 100)) for text, row in plain.measured.items()}
    taken = " ".join([first.kernel.name, *(f"{key}={value}" for key, value in first.params.model_dump().items())])
    for row in rows.values():
        row.update({name: (100, 900) for name in row if name == taken})
    for measured, same in ((rows, False), ({}, True)):
        costs = replace(plain, cycles=CycleTable("made up", digests, measured))
        (choice,) = decide(graph, Setting.of(CORE, CYCLES, kernels.values(), costs))[0].choices.values()
        assert ((choice.kernel.name, choice.params) == (first.kernel.name, first.params)) == same


def test_a_target_without_a_timing_model_is_refused_with_those_that_have_one() -> None:
    for name, says in (
        ("cortex-m33", "none is known of cortex-m33"),
        ("host", "none is known of host"),
        ("rv32-ne16", "the accelerator's own model counts cycles"),
    ):
        with pytest.raises(StageError, match=says) as caught:
            STAGE.foresee(CYCLES, None, load_target(name), ROOT, {})  # type: ignore[arg-type]
        assert caught.value.at == ("stages", "tensorize", "optimize_for")
        if name != "rv32-ne16":
            assert "nucleo-l4r5zi" in caught.value.hint and "docs/timing.md" in caught.value.hint
    STAGE.foresee(CYCLES, None, BOARD, ROOT, {})  # type: ignore[arg-type]
    STAGE.foresee(TensorizeConfig(), None, load_target("host"), ROOT, {})  # type: ignore[arg-type]


def test_only_cycles_read_the_table_and_the_timing_model() -> None:
    for wanted in ("speed", "rom", "ram"):
        config = TensorizeConfig(optimize_for=wanted)
        assert not STAGE.option_files(config, BOARD, ROOT) and not STAGE.option_fields(config)
    assert STAGE.option_files(CYCLES, BOARD, ROOT).keys() == {"cycles/nucleo-l4r5zi", "cycles/cortex-m4"}
    assert {"timing_model", "flash"} <= set(STAGE.option_fields(CYCLES))


@pytest.mark.parametrize("target", TIMED, ids=lambda target: target.name)
def test_every_target_with_a_timing_model_has_cycles_of_its_timing_model(target: Target) -> None:
    cycles, doubt = cycle_tables(cycle_files(target, [ROOT]), target)
    assert not doubt, doubt
    assert cycles.target in (target.name, target.core)
    assert all(0.9 < taken / count < 12 for row in cycles.measured.values() for count, taken in row.values() if count)
    known = set(registry.kernels_of(target))
    assert len(known & cycles.digests.keys()) > 10


def test_a_board_without_a_table_has_its_cores_and_says_so(tmp_path: Path) -> None:
    own = BOARD.model_copy(update={"name": "mine"})
    files = cycle_files(own, [tmp_path, ROOT])
    assert [*files] == ["cycles/cortex-m4"] and names_of(CORE) == ("cycles/cortex-m4",)
    cycles, doubt = cycle_tables(files, own)
    assert cycles.target == "cortex-m4" and doubt.startswith("cycles of an instruction are those of cortex-m4")
    assert doubt.endswith("doit calibrate target=mine --cycles")
    like = own.model_copy(update={"flash": None})
    assert cycle_tables(files, like)[1] == ""
    nothing, doubt = cycle_tables({}, own)
    assert not nothing.measured and doubt.startswith(
        "cycles of mine's kernels are not measured, so instructions decide"
    )

    assert BOARD.flash is not None
    slower = BOARD.model_copy(update={"flash": BOARD.flash.model_copy(update={"wait_states": 9})})
    assert timing_digest(slower) != timing_digest(BOARD)
    cycles, doubt = cycle_tables({"cycles/nucleo-l4r5zi": cycle_table("nucleo-l4r5zi", ROOT)}, slower)
    assert not cycles.measured and "were measured with another timing model" in doubt
    renamed = BOARD.timing_model and BOARD.timing_model.model_copy(update={"title": "another", "source": "another"})
    assert timing_digest(BOARD.model_copy(update={"timing_model": renamed})) == timing_digest(BOARD)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (None, "cannot be read"),
        ({"format": 2}, "is not of format 1"),
        ({"layers": {"a": {"b": 5}}}, "a: no instructions and cycles"),
        ({"layers": {"a": {"b": [5]}}}, "a: no instructions and cycles"),
    ],
)
def test_a_ruined_table(tmp_path: Path, change: Mapping[str, Any] | None, says: str) -> None:
    path = tmp_path / "own.json"
    content = json.loads(cycle_table("nucleo-l4r5zi", ROOT).read_text())
    path.write_text("{" if change is None else json.dumps({**content, **change}))
    with pytest.raises(StageError, match=says) as caught:
        read_cycles(path)
    assert caught.value.hint == "write it again: doit calibrate target=own --cycles"
