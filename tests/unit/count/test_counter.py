"""Counts are what a recipe's layer takes, are kept, and are shared by all networks that have the call."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.api import run_recipe
from pipeline.errors import StageFailed
from pipeline.project import Project
from stages.backends.generic.kernels.generic.elementwise import Requantize
from stages.count import firmware
from stages.count.counter import Counter, _shared_code
from stages.import_model.normalize import normalized
from stages.tensorize.costs import KernelCall
from tests.support.counting import Folders, calls_of, layer_graph
from tests.support.emitted import target_named
from tests.support.integer import integer_graph
from tests.support.recordings import loudness

RV64 = target_named("rv64-rvp")
CONV: dict[str, Any] = {"op": "conv2d", "shape": (6, 6, 16), "out_channels": 8}


def gemm_calls(**options: Any) -> list[KernelCall]:
    return [call for call in calls_of(layer_graph(**CONV | options), RV64) if call.kernel.name == "rvp.gemm_s8"][:2]


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many calls each firmware has that is simulated."""
    sizes: list[int] = []
    count_batch = firmware.count_batch

    def noted(batch: Any, *rest: Any) -> list[int]:
        sizes.append(len(batch))
        return count_batch(batch, *rest)

    monkeypatch.setattr(firmware, "count_batch", noted)
    return sizes


def test_a_count_is_that_of_the_layer_in_a_recipe(tmp_path: Path) -> None:
    recipe = {
        "schema": 1,
        "name": "one",
        "target": "rv32-scalar",
        "model": {"op": "fully_connected", "shape": (9,), "out_channels": 3},
    }
    result = run_recipe(recipe, build=tmp_path / "build", store=tmp_path / "store")
    assert result.report is not None
    (layer,) = result.report["layers"]
    assert layer["cost_source"] == "counted"
    assert abs(layer["instructions"] - layer["cost"]) < 60  # for the call, and the model's arguments
    assert layer["cost"] == min(one["cost"] for one in [layer, *layer["alternatives"]] if one["cost"])


@pytest.mark.parametrize(
    ("core", "mistake", "column", "message"),
    [
        ("rv32-scalar", "simulator: {isa: rv32imac_zfoo}", 22, "Spike refuses simulator.isa 'rv32imac_zfoo' of"),
        ("cortex-m4", "simulator: {cpu: cortex-m99}", 22, "qemu-system-arm refuses simulator.cpu 'cortex-m99'"),
        ("cortex-m4", "simulator: {machine: mps9}", 26, "target mine: qemu-system-arm has no machine mps9"),
        ("cortex-m4", "memory: {rom: {origin: 128M}}", 5, "an empty program does not run on the simulator of core"),
        ("rv32-scalar", "compiler: {compile_flags: [-march=rv32imac_zfoo]}", 31,
         "riscv64-unknown-elf-gcc refuses -march=rv32imac_zfoo in compiler.compile_flags of core mine:"),
        ("rv32-scalar", "kernels: [generic, rvv]", 24,
         "kernels of rvv cannot run on core mine: the folder needs RISC-V vectors"),
    ],
)  # fmt: skip
def test_mistakes_in_a_core_are_reported_at_their_key(
    tmp_path: Path, core: str, mistake: str, column: int, message: str
) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "pipeline.yaml").write_text(f"schema: 1\ncores:\n  mine:\n    like: {core}\n    {mistake}\n")
    model = {"op": "fully_connected", "shape": (9,), "out_channels": 3}
    recipe = {"schema": 1, "name": "one", "target": "mine", "model": model}
    with pytest.raises(StageFailed) as caught:
        run_recipe(recipe, root=Project(tmp_path), store=tmp_path / "store")
    line = 4 if column == 5 else 5
    assert str(caught.value).startswith(f"pipeline.yaml:{line}:{column}: count: {message}")
    assert len(str(caught.value).splitlines()) <= 5


def test_a_count_is_kept_and_holds_for_other_weights_scales_and_company(tmp_path: Path, simulated: list[int]) -> None:
    counter = Counter(RV64, Folders(tmp_path), {"compiler": "12"})
    first, second = gemm_calls()
    counts = counter([first])
    assert simulated == [1]
    again = gemm_calls(seed=5, input={"scale": 0.1, "zero_point": 7})[0]
    assert counter([again]) == counts and simulated == [1]
    both = counter([second, first])
    assert both[first.key] == counts[first.key] and simulated == [1, 1]


def test_a_count_does_not_depend_on_what_else_is_in_the_firmware() -> None:
    layers = (
        {"op": "conv2d", "shape": (3, 3, 8), "out_channels": 8},
        {"op": "depthwise_conv2d", "shape": (5, 5, 8), "kernel": (3, 3)},
        {"op": "softmax", "shape": (10,)},
    )
    calls = [calls_of(layer_graph(**layer), RV64)[0] for layer in layers]
    together = Counter(RV64, None, {})(calls)
    assert together == Counter(RV64, None, {})(calls[::-2]) | Counter(RV64, None, {})(calls[1:2])


@pytest.mark.parametrize("op", ["interpolated", "slide"])
def test_narrow_multipliers_and_layers_without_inputs_are_counted(op: str) -> None:
    """A multiplier of 15 bits stays one, or its products overflow; a window alone reads only its state."""
    calls = [
        call for call in calls_of(integer_graph(normalized(loudness(), "net").data), RV64) if call.view.op.op == op
    ]
    assert len(Counter(RV64, None, {})(calls)) == len(calls) > 0


def test_another_call_and_other_tools_are_counted_anew(tmp_path: Path, simulated: list[int]) -> None:
    call, clamped, wider = (
        gemm_calls(**change)[:1]
        for change in ({}, {"activation": "relu6", "output": {"scale": 0.05, "zero_point": -20}}, {"shape": (6, 7, 16)})
    )
    for number, (calls, compiler) in enumerate([(call, "12"), (clamped, "12"), (wider, "12"), (call, "13")], start=1):
        for jinja in ("3.1", "3.2"):  # no count depends on it
            Counter(RV64, Folders(tmp_path), {"compiler": compiler, "jinja2": jinja})(calls)
            assert simulated == [1] * number


def test_a_quantize_that_only_moves_the_zero_point_is_counted_as_such() -> None:
    """It changes the top bits of its bytes, 16 at a time."""
    calls = []
    for scale in (0.05, 0.06):
        quants = {"input": {"scale": 0.05, "zero_point": -3}, "output": {"scale": scale, "zero_point": 125}}
        graph = layer_graph(op="quantize", shape=(8, 8, 16), dtype="int8", to="uint8", **quants)
        kernel = Requantize()
        calls.append(KernelCall.of(kernel, graph.view(graph.layers[0]), kernel.params(), RV64))
    counts = Counter(RV64, None, {})(calls)
    assert 5 * counts[calls[0].key] < counts[calls[1].key]


def test_a_board_is_counted_on_its_core(tmp_path: Path) -> None:
    board = target_named("longan-nano")
    assert board.by_itself == target_named("rv32-scalar")
    calls = calls_of(layer_graph(op="fully_connected", shape=(700,), out_channels=300), board.by_itself)
    counts = Counter(board.by_itself, None, {})(calls)  # 210,000 weights: more than the board's flash
    assert counts.keys() == {one.key for one in calls}


def test_code_of_calls_is_what_their_firmware_has_of_kernels_and_shared_sections_have_one_name(tmp_path: Path) -> None:
    counter = Counter(RV64, None, {})
    first, second = gemm_calls()
    counter([first])
    counter([second])
    alone, other = counter.rom[first.key], counter.rom[second.key]
    assert alone.own > 8 * 16  # the weights, and the layer's function
    recipe = {"schema": 1, "name": "one", "target": "rv64-rvp", "model": CONV}
    rule = {"match": {}, "kernel": "rvp.gemm_s8", "params": first.params.model_dump()}
    options = {"stages": {"tensorize": {"rules": [rule]}}}
    built = run_recipe({**recipe, **options}, until="compile", build=tmp_path / "b", store=tmp_path / "s")
    symbols = json.loads((built.artifacts["compile"] / "sizes.json").read_text())["symbols"]
    linked = {one["name"]: one["bytes"] for one in symbols if one["file"].startswith("kernels/")}
    sections = {name.rpartition(".")[2]: size for name, size in alone.code.items()}
    assert linked and linked.keys() <= sections.keys()
    assert sum(sections.values()) == pytest.approx(sum(linked.values()), rel=0.1)  # the linker shortens calls
    shared = alone.code.keys() & other.code.keys()
    assert shared and all(alone.code[name] == other.code[name] for name in shared)


@pytest.mark.parametrize("simulator", ["spike", "qemu"])
def test_a_count_depends_on_the_code_of_its_simulators_plugin(simulator: str) -> None:
    assert _shared_code(simulator) != _shared_code("native")
