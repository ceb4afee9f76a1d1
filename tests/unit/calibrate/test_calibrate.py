"""Measuring layers and keeping what was measured."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.base import StageError
from stages.calibrate import measure as measuring
from stages.calibrate.cases import Case, cases
from stages.calibrate.grid import grid
from stages.calibrate.measure import batches, joined, measure
from stages.calibrate.table import Table
from stages.graph import LayerView
from stages.kernels import registry
from stages.models.operators import build
from stages.models.spec import OpModel
from stages.tensorize.costs import CostTable, estimated, signature, variant
from tests.support.emitted import ROOT, target_named
from tests.support.integer import integer_graph
from tests.support.kernels.mini import MiniGemm, MiniParams, mini_graph

RV32 = target_named("rv32-rvp")


def operator(**options: Any) -> Any:
    return integer_graph(build(OpModel.model_validate(options)))


def convolution() -> Any:
    return operator(op="conv2d", shape=(5, 5, 24), out_channels=24, kernel=(3, 3))


@pytest.fixture
def small() -> list[Case]:
    """A convolution by each kernel that can, and an addition with its two inputs."""
    return cases([convolution(), operator(op="add", shape=(4, 4, 3))], RV32)


def test_layers_are_measured_with_every_kernel_once(small: list[Case]) -> None:
    names = [case.variant for case in small]
    assert {"generic.conv2d pixels=0", "rvp.gemm_s8 mr=5", "rvp.gemm_s8 mr=4", "generic.add"} <= set(names)
    again = cases([convolution(), convolution()], RV32)
    assert len({(case.signature, case.variant) for case in again}) == len(again) < len(small)


def test_a_hopeless_kernel_is_not_measured_on_a_long_layer() -> None:
    # 14 x 14 x 256 outputs of 9 * 64 products: 29 million for any kernel, and several times that in plain C.
    long = operator(op="conv2d", shape=(14, 14, 64), out_channels=256, kernel=(3, 3))
    assert [case.kernel.name for case in cases([long], target_named("rv64-rvp"))] == ["rvp.gemm_s8"] * 2


def test_measurements_on_spike_are_bit_exact_and_do_not_depend_on_the_neighbours(small: list[Case]) -> None:
    counts = [count for _, count in measure(small, RV32)]
    for (_, again), count in zip(measure(small[::-1], RV32), counts[::-1], strict=True):
        assert again == pytest.approx(count, abs=8)  # an address takes one instruction to load, or two
    by_name = {case.variant: count for case, count in zip(small, counts, strict=True)}
    # 25 pixels of 24 channels of 216 products: packed instructions take less than one each, plain C more than one.
    assert by_name["rvp.gemm_s8 mr=5"] < 25 * 24 * 216 < by_name["generic.conv2d pixels=0"]


def test_a_wrong_output_is_an_error_that_names_kernel_and_layer(
    small: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = measuring.run_layer
    monkeypatch.setattr(measuring, "run_layer", lambda view, inputs: exact(view, inputs) ^ np.int8(1))
    with pytest.raises(StageError, match=r"computes 600 of 600 elements wrongly\nconv2d int8\[1x5x5x24\]"):
        list(measure(small[:1], RV32))


def test_joined_layers_share_nothing(small: list[Case]) -> None:
    graph = joined([small[0], small[0]])
    first, second = graph.layers
    assert not set(first.inputs + first.outputs) & set(second.inputs + second.outputs)
    assert sorted((*graph.inputs, *graph.outputs)) == sorted(graph.tensors)
    assert signature(graph.view(first)) == small[0].signature


def test_batches_keep_the_order_and_the_limits(small: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_LAYERS", 3)
    groups = list(batches(small * 4))
    assert [case for group in groups for case in group] == small * 4
    assert max(len(group) for group in groups) == 3
    monkeypatch.setattr(measuring, "_BYTES", 1)
    assert all(len(group) == 1 for group in batches(small))


def test_the_grid_has_every_operator_with_a_choice_of_kernels() -> None:
    """Each kernel of the target gets a model of its cost, of more than the number of layers that a model needs."""
    seen: dict[str, set[str]] = {}
    for case in cases(grid(), RV32):
        seen.setdefault(case.variant, set()).add(case.signature)
    chosen = {name for name in seen if name.startswith("rvp.")}
    assert {name.split(" ")[0] for name in chosen} == set(registry.kernels(["rvp"]))
    assert min(len(seen[name]) for name in chosen if "mr=4" not in name) >= 8


def test_the_projects_tables_are_readable_small_and_as_written() -> None:
    for path in sorted((ROOT / "stages" / "kernels" / "costs").glob("*.json")):
        target = target_named(path.stem)
        assert CostTable.read(path).measured
        assert path.stat().st_size < 200_000
        table = Table.read(path, target)
        assert table.stale or table.text(target) == path.read_text()


@pytest.fixture
def mini(monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    monkeypatch.setattr(registry, "kernels", lambda names: {"mini.gemm": MiniGemm()})
    graph = mini_graph()
    view: LayerView = graph.view(graph.layers[0])
    kernel, params = MiniGemm(), MiniParams()
    estimate = estimated(kernel, view, params, RV32)
    yield Case(view, kernel, params, signature(view), variant(kernel, params), estimate)


def test_a_table_survives_the_file_and_is_the_same_every_time(mini: Case, tmp_path: Path) -> None:
    table = Table("rv32-rvp", {"compiler": "12"})
    assert table.missing([mini]) == [mini]
    table.add(mini, 1234)
    path = tmp_path / "rv32-rvp.json"
    path.write_text(table.text(RV32))
    assert CostTable.read(path).price(mini.kernel, mini.view, mini.params, RV32).cost == 1234
    again = Table.read(path, RV32)
    assert (again.missing([mini]), again.stale, again.entries()) == ([], (), 1)
    assert again.text(RV32) == path.read_text()


def test_entries_of_another_version_are_stale_and_missing(mini: Case, tmp_path: Path) -> None:
    table = Table("rv32-rvp")
    table.add(mini, 1234)
    content = json.loads(table.text(RV32))
    content["kernels"]["mini.gemm"] = "0" * 16
    path = tmp_path / "rv32-rvp.json"
    path.write_text(json.dumps(content))
    read = Table.read(path, RV32)
    assert (read.stale, read.entries(), read.missing([mini])) == (("mini.gemm",), 0, [mini])
