"""Recipes of the project through all nine stages and the store: what a run leaves, and says."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pipeline.api import RunResult, run_recipe
from pipeline.commands.bench.record import read_records
from stages.ir.reference import Reference
from stages.support.system.installation import INSTALLATION as ROOT

DIGITS = ROOT / "recipes/digits"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recipes")


@pytest.fixture(scope="module")
def digits(folder: Path) -> RunResult:
    """Kernels are chosen by estimates: to count them takes longer than everything else (tests/unit/count)."""
    variables = {"set": "stages.tensorize.count=off"}
    return run_recipe("digits_rvp", variables, store=folder / "store", build=folder / "build")


def test_digits_on_the_simulator_are_what_litert_says_image_by_image(digits: RunResult) -> None:
    """The firmware's own output file against LiteRT, without the verify stage in between."""
    oracle = Reference((DIGITS / "digits_int8.tflite").read_bytes(), preserve_all=False)
    images, labels = np.load(DIGITS / "heldout_int8.npy"), np.load(DIGITS / "labels.npy")
    expected = np.stack([oracle.run([image[None]])[0][0] for image in images])
    outputs = np.fromfile(digits.artifacts["simulate"] / "outputs.bin", np.int8).reshape(expected.shape)
    np.testing.assert_array_equal(outputs, expected)
    right = round(float(np.mean(expected.argmax(1) == labels)), 6)
    assert digits.report is not None
    assert digits.report["verify"]["accuracy"] == {"images": 360, "ours": right, "litert": right, "agree": 1.0}


def test_a_run_leaves_the_firmware_its_sources_and_the_report(digits: RunResult, folder: Path) -> None:
    left = folder / "build/digits_rvp/rv64-rvp"
    reports = {"report.json", "report.html", "report.md"}
    assert {path.name for path in left.iterdir()} == {"firmware.elf", "src", *reports, "log.txt"}
    assert (left / "firmware.elf").read_bytes()[:4] == b"\x7fELF"
    report = json.loads((left / "report.json").read_text())
    network = Reference((DIGITS / "digits_int8.tflite").read_bytes()).info
    assert (report["format"], report["model"]["name"], report["target"]) == (1, "digits_int8", "rv64-rvp")
    assert report["extensions"] == {"rvp": "0.9.11"}
    assert report["verify"]["mismatches"] == 0 and report["verify"]["inputs"] == 360
    assert report["verify"]["outputs_checked"] == 360 * 10
    layers = report["layers"]
    assert len(layers) == len(network.operators) and [layer["index"] for layer in layers] == list(range(len(layers)))
    counted = sum(layer["instructions"] for layer in layers)
    assert 0.9 < counted / report["instructions"]["total"] <= 1
    memory = report["memory"]
    assert memory["weights_bytes"] < memory["rom_bytes"] and memory["arena_bytes"] < memory["ram_bytes"]
    assert 0 < memory["stack_bytes"] <= 16384
    assert max(row["offset"] + row["bytes"] for row in report["arena"]) <= memory["arena_bytes"]
    assert [stage["kind"] for stage in report["stages"]] == [stage.kind for stage in digits.stages]
    assert {"compiler", "C library", "spike", "tvm", "litert"} <= report["tools"].keys()


def test_the_page_documents_every_field_of_the_report(digits: RunResult) -> None:
    section = (ROOT / "docs/reference/report.md").read_text().partition("## report.json")[2].partition("\n## ")[0]
    fields, *details = re.split(r"^### (\w+)$", section, flags=re.MULTILINE)
    rows = dict(re.findall(r"^\| (`.*?) \| (.*) \|$", fields, re.MULTILINE))
    documented = {
        name: set(re.findall(r"`(\w+)`", text)) for row, text in rows.items() for name in re.findall(r"`(\w+)`", row)
    }
    for name, text in zip(details[::2], details[1::2], strict=True):
        documented[name] |= set(re.findall(r"`(\w+)`", text))
    report = digits.report
    assert report is not None and documented.keys() | {"format"} == report.keys()
    parts = {name: value[0] if isinstance(value, list) else value for name, value in report.items() if value}
    for name in ("model", "verify", "instructions", "memory", "layers", "arena", "symbols", "stages"):
        assert parts[name].keys() - documented[name] == set(), name


def test_what_the_first_page_promises(digits: RunResult) -> None:
    """The page has the accuracy of the run, and the instructions of docs/bench.json."""
    report, page = digits.report, (ROOT / "docs/tutorials/cortex_m.md").read_text()
    assert report is not None
    assert f"{100 * report['verify']['accuracy']['ours']:.1f} %" in page
    instructions = read_records(ROOT / "docs/bench.json")["digits", "cortex-m4"].instructions
    thousands = re.search(r"some (\d+),000 instructions", page)
    assert thousands and instructions and abs(int(thousands[1]) - instructions / 1000) < 1
