"""Counts on pages are those of docs/bench.json, docs/layers.json and the tables of costs, where these have them."""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from pipeline.commands.bench.record import read_records
from stages.support.system.installation import INSTALLATION as ROOT
from tests.pages import accelerator, ne16, timing
from tests.pages.tables import number, rows
from tests.recording import PICTURE

KERNELS = (ROOT / "docs/reference/kernels.md").read_text()
OLD = "old figures; python -m tests.pages {} writes them anew"


@cache
def recorded(row: str, target: str) -> Any:
    """The record of docs/bench.json."""
    return read_records(ROOT / "docs/bench.json")[row, target]


def instructions(row: str, target: str) -> int:
    return int(recorded(row, target).instructions)


@cache
def table(path: str) -> Mapping[str, Any]:
    """A table in JSON, by its path in the project."""
    found: Mapping[str, Any] = json.loads((ROOT / path).read_text())
    return found


def each(layer: str, target: str) -> float:
    """Instructions for a product or an element of a layer of docs/layers.json."""
    found = table("docs/layers.json")["layers"][layer]
    return float(found["targets"][target]["instructions"] / (found["macs"] or found["elements"]))


def test_the_picture_in_the_readme_has_the_figures_of_the_bench() -> None:
    text = re.sub(r"<[^>]*>|&#160;| ", "", PICTURE.read_text())
    shown = [recorded("digits", target) for target in ("rv64-rvp", "cortex-m4")]
    for key, figures in (
        ("instructions", [one.instructions for one in shown]),
        ("RAM", [one.memory["ram_bytes"] for one in shown]),
        ("ROM", [one.memory["rom_bytes"] for one in shown]),
    ):
        row = key + "".join(f"{figure:,}" for figure in figures)
        assert row in text, f"{row}: python -m tests.recording draws the picture again"


def test_ne16_says_what_is_stored() -> None:
    page = ne16.PAGE.read_text()
    network = ""
    table = rows(page, ne16.BEGINS)
    assert [row[1] for row in table] == [*ne16.MODES] * 5
    for row in table:
        network = row[0] or network
        name = network.lower() if network != "MobileNet" else "mobilenet_v1"
        target, requantize = ne16.MODES[row[1]]
        found = recorded(f"{name}_ne16_{requantize or 'core'}", target)
        assert number(row[-3]) == found.instructions, (row, OLD.format("ne16"))
        assert number(row[-2]) == found.cycles["engine"], (row, OLD.format("ne16"))
        assert sum(number(cell) for cell in row[2:8] if cell) <= found.instructions
    assert ne16.told(page) == page, OLD.format("ne16")


def test_the_accelerators_page_says_what_is_stored() -> None:
    engine = {"ds_cnn": "kws_outer16", "resnet_8": "ic_outer16"}
    core = {"mobilenet_v1_0.25_96_vww": "mobilenet_v1_vww", "mobilenet_v1_1.0_224": "mobilenet_v1"}
    found = rows(accelerator.PAGE.read_text(), accelerator.BEGINS)
    assert len(found) == 5
    for name, *figures, _, alone in found:
        network = name.strip("`")
        told = OLD.format("accelerator")
        assert number(alone) == instructions(core.get(network, network), accelerator.CORE), (name, told)
        if row := engine.get(network):
            stored = recorded(row, accelerator.ENGINE)
            wanted = [stored.instructions, stored.cycles["engine"], stored.cycles["waiting"]]
            assert [number(one) for one in figures] == wanted, (name, told)


def test_the_page_of_estimates_says_what_is_stored() -> None:
    page = timing.PAGE.read_text()
    stored = instructions("ds_cnn", "cortex-m4")
    (printed,) = re.findall(r"^instructions  ([\d,]+)", page, re.MULTILINE)
    assert number(printed) == stored, OLD.format("timing")
    chosen = {row[0].strip("`"): row for row in rows(page, timing.CHOSEN)}
    assert number(chosen["kws_cortex_m4"][1]) == stored, OLD.format("timing")
    for network, *_, ours, _, _ in rows(page, timing.PUBLISHED):
        _, count, cycles, *_ = chosen[f"{network}_cortex_m4"]
        assert f"{number(cycles) / number(count):.3f}" == ours, OLD.format("timing")


@pytest.mark.parametrize(
    ("pattern", "layer", "targets"),
    [
        (r"`rvp.matmul_s8` .* ([\d.]+) \(RV64\), ([\d.]+) \(RV32\)", "attention/scores_64x64_64", "rv64-rvp,rv32-rvp"),
        (r"`arm_dsp.matmul_s8` .* ([\d.]+) \|", "attention/scores_64x64_64", "cortex-m4"),
        (r"`mve.matmul_s8` .* ([\d.]+) \|", "attention/scores_64x64_64", "cortex-m55"),
        (
            r"2x2 windows of six channels take ([\d.]+) instructions .*; RV32 ([\d.]+)\)",
            "pooling/lenet_average_2x2",
            "rv64-rvp,rv32-rvp",
        ),
        (r"3x3 windows of 64 channels ([\d.]+) and ([\d.]+)\.", "pooling/inception_average_3x3", "rv64-rvp,rv32-rvp"),
        (r"`rvp.prelu_s8` .*; rows of 64 elements ([\d.]+) \|", "functions/prelu_channels", "rv64-rvp"),
        (r"`rvp.add_s8` \| ([\d.]+);", "elementwise/resnet8_add", "rv64-rvp"),
        (r"`rvp.mul_s8` \| ([\d.]+);", "elementwise/gated_unit", "rv64-rvp"),
    ],
)
def test_the_page_of_kernels_says_what_layers_take(pattern: str, layer: str, targets: str) -> None:
    """To the digits that it has, and two percent."""
    (found,) = re.findall(pattern, KERNELS)
    for said, target in zip([found] if isinstance(found, str) else found, targets.split(","), strict=True):
        digits = len(said.partition(".")[2])
        assert number(said) == pytest.approx(each(layer, target), rel=0.02, abs=0.51 * 10**-digits), (said, target)
