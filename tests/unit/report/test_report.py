"""The report puts each figure where docs/reference/report.md says it is."""

import io
import json

import pytest
from rich.console import Console

from stages.ir.graph import Activation, Graph, Layer, Tensor
from stages.report.build import build_report
from stages.report.markdown import markdown
from stages.report.terminal import render

TARGET = {
    "name": "rv64-rvp",
    "core": "rv64-rvp",
    "counter": "minstret",
    "extensions": {"rvp": "0.9.11"},
    "board": None,
    "memory": {"rom": {"origin": 0x80000000, "length": 4096}, "ram": {"origin": 0x90000000, "length": 4096}},
    "simulated": None,
    "simulator": {"kind": "spike", "machine": ""},
}
PLAIN = {"address": 4096, "loaded_from": "", "rules": []}


def relu(dtype):
    """A graph of one layer, from a tensor of this type to one of int8."""
    tensors = {name: Tensor(name=name, shape=(4,), dtype=kind) for name, kind in (("x", dtype), ("y", "int8"))}
    layer = Layer(index=0, name="y", op=Activation(function="relu"), inputs=("x",), outputs=("y",))
    return Graph(tensors, [layer], ["x"], ["y"])


@pytest.fixture
def artifacts(tmp_path):
    """Artifacts of a two-layer network, one folder per stage."""
    layer = {"index": 0, "name": "a/Conv", "op": "conv2d", "shape_in": [[1, 4, 4, 8]], "shape_out": [[1, 4, 4, 2]]}
    files = {
        "import": {"import.json": {"name": "net", "sha256": "ab" * 32, "signature": None, "warnings": []}},
        "layout": {"layouts.json": {"warnings": ["layout rule 3 ({op: add}) matches no operator"]}},
        "tensorize": {"plan.json": {"layers": [{"index": 0, "why": "cheapest", "alternatives": [{"kernel": "g"}]}]}},
        "emit": {
            "model.json": {
                "arena_bytes": 160,
                "weights_bytes": 64,
                "layers": [
                    {**layer, "macs": 256, "kernel": "rvp.gemm_s8", "layout": "NHWC"},
                    {**layer, "index": 1, "name": "b|c", "op": "softmax", "macs": 0, "kernel": "g", "layout": ""},
                ],
                "arena": [{"name": "x", "kind": "tensor", "offset": 0, "bytes": 128, "first": 0, "last": 0}],
                "constants": [{"name": "000.bias", "layers": [0, 1], "region": "", "offset": 0, "bytes": 64}],
            }
        },
        "compile": {"sizes.json": {"rom_bytes": 4096, "data": 8, "bss": 200, "ram_bytes": 9999, "symbols": []}},
        "simulate": {
            "counts.json": {
                "inferences": [{"total": 130, "layers": [100, 28]}, {"total": 140, "layers": [100, 38]}],
                "stack_bytes": 92,
            }
        },
        "verify": {"verify.json": {"inputs": 2, "outputs_checked": 64, "mismatches": 0, "reference": "LiteRT"}},
    }
    folders = {}
    for kind, contents in files.items():
        folders[kind] = tmp_path / kind
        folders[kind].mkdir()
        for name, content in contents.items():
            (folders[kind] / name).write_text(json.dumps(content))
    folders["quantize"] = tmp_path / "quantize"
    folders["quantize"].mkdir()
    for stage in ("quantize", "tensorize"):
        relu("int8").save(folders[stage])
    return folders


def test_totals_are_of_the_first_inference_and_the_range_is_over_all(artifacts):
    report = build_report(artifacts, "rv64-rvp", TARGET)
    assert report["instructions"] == {"total": 130, "minimum": 130, "maximum": 140}
    assert [layer["instructions"] for layer in report["layers"]] == [100, 28]
    assert report["model"]["macs"] == 256
    assert report["memory"]["ram_bytes"] == 8 + 200 + 92  # data, bss and the stack that is really used


def test_types_after_legalization_are_counted_and_what_was_widened_is_named(artifacts):
    report = build_report(artifacts, "rv64-rvp", TARGET)
    assert report["legalize"] == {"tensors": {"int8": 2}, "widened": []}
    assert "- **legalize**: all activations are int8\n" in markdown(report)
    relu("int16").save(artifacts["quantize"])
    report = build_report(artifacts, "rv64-rvp", TARGET)
    assert report["legalize"] == {"tensors": {"int16": 1, "int8": 1}, "widened": ["y"]}
    assert "widened: y\n" in markdown(report)


def test_a_target_without_a_counter_reports_no_instructions(artifacts):
    report = build_report(artifacts, "host", {**TARGET, "counter": "none"})
    assert report["instructions"]["total"] is None
    assert all(layer["instructions"] is None for layer in report["layers"])
    assert "instructions" not in dict(line.split(":", 1) for line in markdown(report).splitlines() if ":" in line)


def test_terminal_shows_share_and_cost_per_mac(artifacts):
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(render(build_report(artifacts, "rv64-rvp", TARGET), width=160))
    text = console.export_text()
    assert "0.391" in text  # 100 / 256
    assert "76.9 %" in text  # 100 / 130
    assert "0 mismatches in 64 output values of 2 inferences against LiteRT" in text


def test_warnings_of_the_stages_are_shown_below_the_table(artifacts):
    layers = [{"index": i, "why": "", "alternatives": []} for i in range(2)]
    layers[1]["alternatives"] = [{"kernel": "rvp.softmax", "reason": "the kernel reads and writes NHWC"}]
    plan = {"layers": layers, "warnings": ["tensorize rule 1 ({name: x*} -> k) matches no layer"]}
    (artifacts["tensorize"] / "plan.json").write_text(json.dumps(plan))
    model = json.loads((artifacts["emit"] / "model.json").read_text())
    model["layers"][1]["kernel"] = "generic.softmax"
    (artifacts["emit"] / "model.json").write_text(json.dumps(model))
    report = build_report(artifacts, "rv64-rvp", TARGET)
    assert report["warnings"] == [
        "layout rule 3 ({op: add}) matches no operator",
        "tensorize rule 1 ({name: x*} -> k) matches no layer",
        "rvp.softmax cannot compute layer 1 in this layout: the kernel reads and writes NHWC",
    ]
    for text in (shown(report), markdown(report)):
        assert all(warning in text for warning in report["warnings"])


def shown(report, width=160):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(render(report, width=width))
    return console.export_text()


@pytest.mark.parametrize("width", [80, 119, 160])
def test_a_file_gets_the_lines_that_rich_prints(artifacts, width):
    report = build_report(artifacts, "rv64-rvp", TARGET)
    stream = io.StringIO()
    rendered = render(report, width=width)
    Console(file=stream, width=width).print(rendered)
    assert rendered.plain() == stream.getvalue()


def test_an_arena_over_several_regions_is_reported_by_region(artifacts):
    model = json.loads((artifacts["emit"] / "model.json").read_text())
    model["arena"][0]["region"] = "sram"
    (artifacts["emit"] / "model.json").write_text(json.dumps({**model, "warnings": ["memory rule 2 matches no layer"]}))
    blocks = [("arena", "dtcm", 96), ("arena", "sram", 64), ("weights", "rom", 64)]
    sizes = json.loads((artifacts["compile"] / "sizes.json").read_text())
    sizes["blocks"] = [
        {
            "part": part,
            "region": region,
            "bytes": size,
            "symbol": f"model_{part}_{region}",
            "section_macro": "M",
            **PLAIN,
        }
        for part, region, size in blocks
    ]
    (artifacts["compile"] / "sizes.json").write_text(json.dumps(sizes))
    report = build_report(artifacts, "rv64-rvp", TARGET)
    assert [tuple(block.values()) for block in report["memory"]["blocks"]] == [
        (part, region, size, f"model_{part}_{region}", 4096, "") for part, region, size in blocks
    ]
    assert "arena 160 B (dtcm 96, sram 64), " in shown(report)
    assert "weights 64 B\n" in shown(report) + "\n"
    assert "| x | tensor | sram | 0 | 128 | 0 | 0 |" in markdown(report)
    assert report["warnings"][-1] == "memory rule 2 matches no layer"


def test_without_sizes_counts_and_verdict(artifacts):
    for kind in ("verify", "simulate", "compile"):
        del artifacts[kind]
        report = build_report(artifacts, "rv64-rvp", TARGET)
        assert "## Layers" in markdown(report)
        assert report["verify"] is None
    assert report["instructions"] == {"total": None, "minimum": None, "maximum": None}
    assert [layer["instructions"] for layer in report["layers"]] == [None, None]
    assert (report["memory"]["rom_bytes"], report["memory"]["ram_bytes"]) == (None, None)
    assert report["memory"]["arena_bytes"] > 0
    assert "not run: outputs were not compared" in shown(report)


def test_a_float_verdict_says_what_was_allowed_and_what_was_worst(artifacts):
    verified = {"inputs": 1, "outputs_checked": 10, "mismatches": 0, "reference": "LiteRT"}
    verified["float"] = {"max_relative": 3.14159e-6, "layers_max_relative": 0.1, "tolerance": 1e-4}
    (artifacts["verify"] / "verify.json").write_text(json.dumps(verified))
    text = shown(build_report(artifacts, "rv64-rvp", TARGET))
    assert "10 output values of 1 inference within 0.0001 of LiteRT (relative); largest difference 3.1e-06" in text
    assert "mismatches" not in text
