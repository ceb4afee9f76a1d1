"""`doit bench suite=layers`: figures of single layers, what is stored of them, and what is typed wrong."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.commands.bench import layers
from pipeline.commands.bench.command import bench
from pipeline.commands.bench.layer_figures import Figure, LayerRow, compare_layers, merged, read_rows, slower
from pipeline.commands.bench.suite import load_suite
from pipeline.commands.exit_codes import FAILED
from pipeline.errors import PipelineError
from tests.support.bench_options import BENCH_OPTIONS

Capture = pytest.CaptureFixture[str]

ROOT = Path(__file__).resolve().parents[5]
ROWS = {
    row.name: row
    for row in (
        LayerRow("conv/a", 1000, 50, {"m4": Figure(900, ("x.gemm",), {"cmsis-nn": 1800}), "m55": Figure(200, ("y",))}),
        LayerRow("conv/b", 100, 50, {"m4": Figure(300, ("x.gemm",), {"cmsis-nn": 150})}),
        LayerRow("pool/c", 0, 50, {"m4": Figure(100, ("x.pool",))}),
    )
}


def run(**options: Any) -> int:
    sampling = {name: options.pop(name) for name in ("drawn", "seed") if name in options}
    return bench({**BENCH_OPTIONS, **options}, root=ROOT, suite_name=options.pop("suite", "layers"), sampling=sampling)


def test_merging_keeps_what_was_not_measured() -> None:
    new = LayerRow("conv/a", 1000, 50, {"m4": Figure(800, ("z",))})
    kept = merged(ROWS, {"conv/a": new}, ["conv/a", "pool/c"])
    assert [*kept] == ["conv/a", "pool/c"]
    assert kept["conv/a"].figures["m4"] == Figure(800, ("z",), {"cmsis-nn": 1800})
    assert kept["conv/a"].figures["m55"] == ROWS["conv/a"].figures["m55"]
    refused = merged(ROWS, {"conv/a": new}, ["conv/a"], "cmsis-nn")  # it was asked, and has no figure now
    assert refused["conv/a"].figures["m4"] == Figure(800, ("z",))
    assert merged(ROWS, {"conv/a": new}, ["conv/a"], "another") == {"conv/a": kept["conv/a"]}
    other = replace(new, macs=2000)  # the recipe is another now
    assert merged(ROWS, {"conv/a": other}, ["conv/a"]) == {"conv/a": other}


def test_check() -> None:
    now = {
        "conv/a": LayerRow("conv/a", 1000, 50, {"m4": Figure(905, ("x.gemm",)), "m55": Figure(203, ("w",))}),
        "conv/b": LayerRow("conv/b", 100, 50, {"m4": Figure(200, ("x",))}),
        "new/d": LayerRow("new/d", 100, 50, {"m4": Figure(200, ("x",))}),
    }
    verdict = compare_layers(now, ROWS)
    assert verdict.worse == ["conv/a on m55: instructions 200 -> 203 (+1.5 %), with w; before with y"]
    assert verdict.better == ["conv/b on m4: instructions 300 -> 200 (-33.3 %)"]
    assert verdict.stale == ["conv/b on m4: instructions 300 -> 200 (-33.3 %), with x; before with x.gemm"]
    assert [note.partition(":")[0] for note in verdict.notes] == ["new/d on m4"]


def test_stored_figures_are_no_slower_with_wider_registers() -> None:
    order = load_suite().layers.no_slower
    assert order == {"rv64-rvp": "rv32-rvp"}
    assert slower(read_rows(ROOT / "docs" / "layers.json"), order) == []


def test_drawn_layers_are_held_to_the_order_of_targets(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """Not to docs/layers.json, which has none of them."""
    monkeypatch.setattr(layers, "slower", lambda rows, order: [f"{len(rows)} layers, {order}"])
    assert run(drawn="1", seed="5", targets="rv64-rvp", check=True) == FAILED
    output = capsys.readouterr().out
    assert "1 figures of 1 layers" in output and "not stored" not in output
    assert "WORSE: 1 layers, {'rv64-rvp': 'rv32-rvp'}" in output


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"suite": "layer"}, "unknown suite 'layer'; did you mean 'layers'?"),
        ({"times": True}, "--times cannot be combined with suite=layers"),
        ({"fit": True}, "--fit needs suite=silicon"),
        ({"only": "nothing/*"}, "only=nothing/\\*: no layer matches"),
        ({"drawn": "0"}, "drawn=0: expected a number from 1 to 2,000"),
        ({"drawn": "5", "update": True}, "drawn= cannot be combined with --update"),
        ({"targets": "host"}, "suite=layers measures kernels of cores; target host does not count instructions"),
        ({"targets": "rv32-ne16"}, "suite=layers measures kernels of cores; target rv32-ne16 has an accelerator"),
    ],
)
def test_what_is_typed_wrong(options: dict[str, Any], says: str) -> None:
    with pytest.raises(PipelineError, match=says.replace("?", "\\?")):
        run(**options)
