"""Measuring layers and keeping what was measured."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.base import StageError
from stages.calibrate import measure as measuring
from stages.calibrate.cases import Case, Room, cases, room_for, room_of
from stages.calibrate.grid import grid
from stages.calibrate.measure import batches, joined, measure
from stages.calibrate.table import Table
from stages.graph import LayerView
from stages.import_model.normalize import normalized
from stages.kernels import registry
from stages.models.operators import build
from stages.models.spec import OpModel
from stages.tensorize.costs import CostTable, estimated, of_kind, quantities, signature, variant
from tests.support.emitted import target_named
from tests.support.integer import integer_graph
from tests.support.kernels.mini import MiniGemm, MiniParams, mini_graph
from tests.support.variables import frames

RV32 = target_named("rv32-rvp")


def operator(**options: Any) -> Any:
    return integer_graph(build(OpModel.model_validate(options)))


def convolution() -> Any:
    return operator(op="conv2d", shape=(5, 5, 24), out_channels=24, kernel=(3, 3))


@pytest.fixture
def small() -> list[Case]:
    """A convolution by each kernel that can, an addition with its two inputs, and a layer that keeps state."""
    lstm = operator(op="lstm", shape=(2, 4), out_channels=8)
    return cases([convolution(), operator(op="add", shape=(4, 4, 3)), lstm], RV32)


def test_layers_are_measured_with_every_kernel_once(small: list[Case]) -> None:
    names = [case.variant for case in small]
    assert {"generic.conv2d pixels=0", "rvp.gemm_s8 mr=5", "rvp.gemm_s8 mr=4", "generic.add"} <= set(names)
    again = cases([convolution(), convolution()], RV32)
    assert len({(case.signature, case.variant) for case in again}) == len(again) < len(small)


def test_a_hopeless_kernel_is_not_measured_on_a_long_layer() -> None:
    # 14 x 14 x 256 outputs of 9 * 64 products: 29 million for any kernel, and several times that in plain C.
    long = operator(op="conv2d", shape=(14, 14, 64), out_channels=256, kernel=(3, 3))
    measured = [case.kernel.name for case in cases([long], target_named("rv64-rvp"))]
    assert {"rvp.gemm_s8", "rvp.direct_s8"} <= {*measured}
    assert not [name for name in measured if name.startswith("generic.")]


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


def test_a_state_that_a_layer_only_reads_is_an_input() -> None:
    """So concatenations of streaming networks are measured; a layer that writes its state keeps it."""
    found = cases([integer_graph(normalized(frames("int8"), "frames").data)], RV32)
    graph = joined(found)
    assert not any(graph.tensors[name].state for name in graph.inputs)
    states = {name for layer in graph.layers for name in layer.state}
    assert states == {name for name, tensor in graph.tensors.items() if tensor.state} and states


def test_batches_keep_the_order_and_the_limits(small: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    room = room_of(RV32)
    monkeypatch.setattr(measuring, "_LAYERS", 3)
    groups = list(batches(small * 4, room))
    assert [case for group in groups for case in group] == small * 4
    assert max(len(group) for group in groups) == 3
    monkeypatch.setattr(measuring, "_BYTES", 1)
    assert all(len(group) == 1 for group in batches(small, room))


def test_a_batch_fits_the_targets_memory_with_one_of_its_layers_twice(small: list[Case]) -> None:
    sizes = [room_for(case.view) for case in small]
    for room in (room_of(RV32), Room(2 * max(s.activations for s in sizes), 2 * max(s.weights for s in sizes))):
        for group in batches(small, room):
            own = [room_for(case.view) for case in group]
            largest = Room(max(one.activations for one in own), max(one.weights for one in own))
            assert len(group) == 1 or sum(own, largest) <= room
    assert [len(group) for group in batches(small, Room(1, 1))] == [1] * len(small)


def test_a_layer_that_the_targets_memory_does_not_hold_is_not_measured() -> None:
    # 800 KB of output; the Cortex-M55 has 512 KB, its neighbour 4 MB.
    large = operator(op="conv2d", shape=(112, 112, 3), out_channels=64)
    assert cases([large], target_named("cortex-m4"))
    assert cases([large], target_named("cortex-m55")) == []


def test_tvm_works_on_one_batch_at_a_time(small: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    inside, most = 0, 0
    exact = measuring.tensorize_graph

    def watched(*arguments: Any, **more: Any) -> Any:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.2)  # a second thread would come in now
        made = exact(*arguments, **more)
        inside -= 1
        return made

    monkeypatch.setattr(measuring, "tensorize_graph", watched)
    monkeypatch.setattr(measuring, "_LAYERS", 1)
    assert len(list(measure(small[:3], RV32))) == 3
    assert most == 1


def test_the_grid_has_every_operator_with_a_choice_of_kernels() -> None:
    """Each kernel of the target gets a model of its cost, of more than the number of layers that a model needs."""
    seen: dict[str, set[str]] = {}
    for case in cases(grid(), RV32):
        seen.setdefault(case.variant, set()).add(case.signature)
    chosen = {name for name in seen if name.startswith("rvp.")}
    assert {name.split(" ")[0] for name in chosen} == set(registry.kernels(["rvp"]))
    assert min(len(seen[name]) for name in chosen if "mr=4" not in name) >= 8


@pytest.fixture
def mini(monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    monkeypatch.setattr(registry, "kernels_of", lambda target: {"mini.gemm": MiniGemm()})
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


def test_a_kernel_for_several_kinds_has_a_model_of_each_that_was_measured_often() -> None:
    """A mean divides, a maximum does not: one model for both would be right for neither."""
    law = {"avg_pool2d": 9, "max_pool2d": 4}
    table, kinds = Table("rv32-rvp"), [case for case in cases(grid(), RV32) if case.variant == "rvp.pool2d"]
    for case in kinds:
        table.add(case, law[case.view.layer.kind] * round(quantities(case.view, None)["taps"]))
    fits = json.loads(table.text(RV32))["fits"]
    assert fits.keys() == {"rvp.pool2d", *(of_kind("rvp.pool2d", kind) for kind in law)}
    assert max(fits[of_kind("rvp.pool2d", kind)]["error"] for kind in law) < 0.001
    assert fits["rvp.pool2d"]["error"] > 0.1


def test_quantities_of_layers_that_were_measured_long_ago_are_entered(mini: Case) -> None:
    table = Table("rv32-rvp")
    table.add(mini, 1234)
    current = table.text(RV32)
    table.layers[mini.signature]["work"] = {"products": 1}
    table.describe([mini])
    assert table.text(RV32) == current


def test_entries_of_another_version_are_stale_and_missing(mini: Case, tmp_path: Path) -> None:
    table = Table("rv32-rvp")
    table.add(mini, 1234)
    content = json.loads(table.text(RV32))
    content["kernels"]["mini.gemm"] = "0" * 16
    path = tmp_path / "rv32-rvp.json"
    path.write_text(json.dumps(content))
    read = Table.read(path, RV32)
    assert (read.stale, read.entries(), read.missing([mini])) == (("mini.gemm",), 0, [mini])


def test_kernels_on_other_layouts_are_measured_on_them_and_so_are_the_transforms() -> None:
    """BlockedConv2d reads and writes NCHW16c alone; with weights of 4 bits it keeps them so."""
    host = target_named("host")
    blocked = host.model_copy(
        update={"kernels": ("blocked", "generic"), "modules": {"kernels/blocked": "tests.support.kernels.blocked"}}
    )
    # Bytes of the C kernels at 8 and at 4 bits; 20 channels do not fill their blocks.
    graphs = [
        operator(op="conv2d", shape=(4, 4, 20), out_channels=20, kernel=(3, 3), weights=weights)
        for weights in ("int8", "int4")
    ]
    own = [case for case in cases(graphs[:1], blocked) if "NCHW16c" in case.signature]
    found = {(case.variant.partition(" ")[0], case.signature) for case in own}
    assert {name for name, _ in found} == {"blocked.conv2d", "generic.move"}
    assert sum(name == "generic.move" for name, _ in found) == 2  # to blocks and back: input and output are alike
    measured = list(
        measure([*own, *[c for c in cases(graphs[1:], blocked) if c.kernel.name == "blocked.conv2d"]], blocked)
    )
    assert len(measured) == len(own) + 1
    assert all(case.signature.count("NCHW16c") >= 1 for case, _ in measured)
