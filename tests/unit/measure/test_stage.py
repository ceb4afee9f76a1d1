"""`tensorize: {measure: close}` in a recipe: the stage that it puts before tensorize, what that leaves, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.api import run_recipe
from pipeline.errors import PipelineError
from pipeline.plugins.registry import default_registry
from pipeline.project import Project
from pipeline.recipes.loader import load_recipe
from stages.base import StageError
from stages.calibrate import measure as measuring
from stages.calibrate.cases import Case, cases, room_of
from stages.calibrate.measure import NotRun, batches
from stages.compile.firmware import DoesNotFit
from stages.measure.run import what_runs
from stages.models.operators import build
from stages.models.spec import OpModel
from stages.simulate.firmware import FirmwareRun, run_firmware
from stages.system.installation import INSTALLATION as ROOT
from stages.targets.spec import Target
from stages.tensorize import TensorizeConfig, TensorizeStage
from tests.support.emitted import target_named
from tests.support.integer import integer_graph

RECIPE = """\
schema: 1
target: rv32-rvp
model: {op: conv2d, shape: [7, 9, 20], out_channels: 13, kernel: [3, 3]}
stages:
  tensorize: {measure: close}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "net.yaml").write_text(RECIPE)
    (tmp_path / "pipeline.yaml").write_text("schema: 1\n")
    return Project(tmp_path)


def plan(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What tensorize decided, and of that the convolution."""
    whole = json.loads((folder / "plan.json").read_text())
    return whole, next(layer for layer in whole["layers"] if layer["op"] == "conv2d")


def test_close_puts_it_before_tensorize(project: Project) -> None:
    def chain(**given: str) -> tuple[str, ...]:
        return load_recipe("net", root=project, registry=default_registry(), variables=given).chain.names

    usual = default_registry().named
    assert chain() == (*usual[:3], "measure", *usual[3:])
    assert chain(set="stages.tensorize.measure=off") == usual


def test_tensorize_chooses_by_what_was_measured(project: Project) -> None:
    made = run_recipe("net", root=project)
    figures = json.loads((made.artifacts["measure"] / "measured.json").read_text())["layers"]
    whole, layer = plan(made.artifacts["tensorize"])
    count = sum(map(len, figures.values()))
    assert whole["measured"] == count >= 2
    assert layer["cost_source"] == "measured" and layer["why"].endswith("(measured)")
    (row,) = (row for name, row in figures.items() if name.startswith("conv2d int8[1x7x9x20] -> int8[1x7x9x13] "))
    assert layer["cost"] == min(row.values())
    assert made.report is not None and made.report["measured"] == count
    (own,) = (one for one in made.report["layers"] if one["op"] == "conv2d")
    assert own["instructions"] == pytest.approx(layer["cost"], rel=0.01)  # by itself, as in the network
    page = (project.root / "build/net/rv32-rvp/report.md").read_text()
    assert f"{count} kernels, where costs left open which is best" in page

    found = json.loads((made.artifacts["measure"].parent / "manifest.json").read_text())["ingredients"]
    assert {"compiler", "spike", "tvm", "C library"} <= found["tools"].keys()
    code = {"stages/calibrate/settle.py", "stages/emit/templates/layers.c.j2", "stages/kernels/rvp/gemm_s8.S"}
    assert code <= found["code"].keys() and any(name.startswith("stages/targets/riscv/") for name in found["code"])
    assert found["files"].keys() == {"costs"} and "memory" in found["target"]
    assert found["parameters"]["measure"] == "close" and "tuning" not in found["parameters"]
    decided = json.loads((made.artifacts["tensorize"].parent / "manifest.json").read_text())["ingredients"]
    assert decided["parameters"].keys().isdisjoint({"tuning", "measure"})

    # What changes no layer's facts changes no figure.
    again = run_recipe("net", {"set": "stages.tensorize.narrow_weights=true"}, until="measure", root=project)
    assert again.artifacts["measure"] != made.artifacts["measure"]
    assert (again.artifacts["measure"] / "measured.json").read_bytes() == (
        made.artifacts["measure"] / "measured.json"
    ).read_bytes()

    without = run_recipe("net", {"set": "stages.tensorize.measure=off"}, until="tensorize", root=project)
    whole, layer = plan(without.artifacts["tensorize"])
    assert whole["measured"] is None and layer["cost_source"] == "fitted"


def test_a_network_of_measured_layers_needs_nothing(project: Project) -> None:
    text = RECIPE.replace("[7, 9, 20], out_channels: 13, kernel: [3, 3]", "[8, 8, 16], out_channels: 16")
    (project.root / "recipes/net.yaml").write_text(text)
    made = run_recipe("net", until="tensorize", root=project)
    assert json.loads((made.artifacts["measure"] / "measured.json").read_text())["layers"] == {}
    assert plan(made.artifacts["tensorize"])[0]["measured"] == 0
    log = (project.root / "build/net/rv32-rvp/log.txt").read_text()
    assert "measure   | costs leave nothing open" in log


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("host", "target host counts no instructions"),
        ("rv32-ne16", "target rv32-ne16 has an accelerator, whose layers are planned by its own model"),
    ],
)
def test_on_other_targets_nothing_is_measured(project: Project, target: str, message: str) -> None:
    made = run_recipe("net", {"target": target}, until="tensorize", root=project)
    assert json.loads((made.artifacts["measure"] / "measured.json").read_text())["layers"] == {}
    assert f"measure   | nothing is measured: {message}" in (project.root / f"build/net/{target}/log.txt").read_text()
    found = json.loads((made.artifacts["measure"].parent / "manifest.json").read_text())["ingredients"]
    assert "compiler" not in found["tools"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (DoesNotFit("ram needs 9 bytes more"), "it does not fit the target"),
        (
            NotRun("the program was still running after 600 s", hint="raise it"),
            "the program was still running after 600 s",
        ),
    ],
)
def test_what_cannot_be_measured_stays_estimated_and_others_are_not(
    project: Project, monkeypatch: pytest.MonkeyPatch, error: StageError, reason: str
) -> None:
    def small(cases: list[Case], *_: object, **__: object) -> Iterator[tuple[Case, int]]:
        if len(cases) > 1 or cases[0].variant.endswith("mr=4"):
            raise error
        yield cases[0], 1000

    monkeypatch.setattr("stages.measure.run.measure", small)
    made = run_recipe("net", until="tensorize", root=project)
    layers = json.loads((made.artifacts["measure"] / "measured.json").read_text())["layers"]
    variants = {name for row in layers.values() for name in row}
    assert variants and not any(name.endswith("mr=4") for name in variants)
    log = (project.root / "build/net/rv32-rvp/log.txt").read_text()
    assert f"measure   | not measured, {reason}: rvp.gemm_s8 mr=4: conv2d " in log


def convolutions() -> list[Case]:
    one = integer_graph(build(OpModel(op="conv2d", shape=(5, 5, 24), out_channels=24, kernel=(3, 3))))
    return cases([one], target_named("rv32-rvp"))


def test_a_firmware_that_fails_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [replace(one, variant=str(n)) for n, one in enumerate(islice(cycle(convolutions()), 100))]
    asked: list[int] = []

    def one_is_bad(cases: list[Case], target: Target, **_: object) -> Iterator[tuple[Case, int]]:
        for group in batches(cases, room_of(target)):
            asked.append(len(group))
            if any(case.variant == "70" for case in group):
                raise DoesNotFit("ram needs 9 bytes more")
            yield from ((case, 1000) for case in group)

    monkeypatch.setattr("stages.measure.run.measure", one_is_bad)
    told: list[str] = []
    done = [case.variant for case, _ in what_runs(many, target_named("rv32-rvp"), log=told.append)]
    assert done == [str(n) for n in range(100) if n != 70]
    assert len(told) == 1 and told[0].startswith("not measured, it does not fit the target: 70: conv2d ")
    assert sorted(asked, reverse=True)[:2] == [64, 36] and len(asked) <= 2 + 2 * 6


def test_a_kernel_that_faults_is_not_measured_and_one_that_computes_wrongly_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = target_named("rv32-rvp")

    def faults(elf: Path, *given: Any, **named: Any) -> FirmwareRun:
        if b"rvp_direct_s8" in elf.read_bytes():
            raise StageError("the firmware stopped: load access fault\nin rvp_direct_s8")
        return run_firmware(elf, *given, **named)

    one, bad = convolutions()[0], next(case for case in convolutions() if case.kernel.name == "rvp.direct_s8")
    monkeypatch.setattr(measuring, "run_firmware", faults)
    told: list[str] = []
    done = list(what_runs([one, bad], target, log=told.append))
    assert [case.variant for case, count in done if count > 0] == [one.variant]
    assert told == [f"not measured, the firmware stopped: load access fault: {bad.variant}: {bad.signature}"]
    exact = measuring.run_layer
    monkeypatch.setattr(measuring, "run_layer", lambda view, inputs: exact(view, inputs) ^ np.int8(1))
    with pytest.raises(StageError, match="elements wrongly"):
        list(what_runs([one], target, log=told.append))


@pytest.mark.parametrize(("wanted", "own"), [("speed", {"measure"}), ("cycles", {"measure", "tensorize"})])
def test_boards_of_one_core_share_what_is_before_compile_but_what_is_measured(wanted: str, own: set[str]) -> None:
    registry, config = default_registry(), TensorizeConfig.model_validate({"optimize_for": wanted})

    def keyed(kind: str, board: str) -> dict[str, Any]:
        stage = registry[kind]
        more = stage.option_fields(config) if isinstance(stage, TensorizeStage) else ()
        return target_named(board).model_dump(include={*stage.target_fields, *more})

    before = ("import", "layout", "quantize", "measure", "tensorize", "emit")
    assert {kind for kind in before if keyed(kind, "nucleo-l4r5zi") != keyed(kind, "nrf52840-dk")} == own


def test_the_option_is_close_or_off() -> None:
    with pytest.raises(PipelineError, match=r"measure: should be 'worth', 'close' or (false|False)"):
        load_recipe(
            "digits_rvp", root=ROOT, registry=default_registry(), variables={"set": "stages.tensorize.measure=all"}
        )
