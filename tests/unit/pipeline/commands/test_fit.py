"""`doit fit`: the figures are those of `doit run`, a board that is too small has its missing bytes."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipeline.api import run_recipe
from pipeline.commands.fit.measure import measure
from pipeline.commands.fit.page import fit_page
from pipeline.commands.fit.request import CALIBRATED, Request, request_of
from pipeline.commands.fit.row import FITS, REFUSED, TOO_LARGE, Row, ordered
from pipeline.commands.fit.table import fit_table
from pipeline.errors import PipelineError, StageFailed
from pipeline.plugins.registry import registry_of
from pipeline.project import Project
from pipeline.recipes.targets import load_targets
from pipeline.runs.workspace import Workspace
from pipeline.terminal.progress import ProgressDisplay
from stages.ir.models import zoo
from stages.support.system.installation import INSTALLATION as ROOT
from tests.support.convolutions import convolutions
from tests.support.processes import python

# A layer with 4,096 bytes of weights, and buffers of 4,096 and 1,024 bytes.
RECIPE = """\
schema: 1
name: layer
extends: cortex_m_base
target: roomy
model: {op: conv2d, shape: [16, 16, 16], out_channels: 16, kernel: [4, 4], stride: [4, 4], padding: valid}
"""
BOARDS = """\
schema: 1
boards:
  roomy: {like: nucleo-f446re, title: enough of both}
  tight:
    like: nucleo-f446re
    title: RAM for the tensors only, and too little ROM
    memory: {rom: {origin: "0x08000000", length: 5K}, ram: {origin: "0x20000000", length: 9232}}
  small:
    like: nucleo-f446re
    title: less RAM than rows need by default
    memory: {rom: {origin: "0x08000000", length: 512K}, ram: {origin: "0x20000000", length: 5888}}
  parts:
    core: cortex-m4
    title: two RAMs, one after the other
    memory:
      rom: {origin: "0x08000000", length: 64K}
      fast: {origin: "0x20000000", length: 4K, holds: [data, stack, arena]}
      slow: {origin: "0x20001000", length: 2K, speed: 1, holds: [arena]}
      stack: 2K
"""


FOLDER = "^model=models: is a folder, not a file\\n"


def project(folder: Path) -> Project:
    (folder / "recipes").mkdir()
    (folder / "pipeline.yaml").write_text(BOARDS)
    (folder / "recipes/layer.yaml").write_text(RECIPE)
    (folder / "net.tflite").write_bytes((ROOT / "recipes/digits/digits_int8.tflite").read_bytes())
    (folder / "float.tflite").write_bytes(zoo.build("ds_cnn", "float32"))
    (folder / "text.tflite").write_text("no network")
    return Project(folder)


def request(place: Project, *words: str, **variables: str) -> Request:
    return request_of(words, variables, place, registry_of(place))


def test_figures_are_those_of_a_run_and_missing_bytes_those_of_the_linker(tmp_path: Path) -> None:
    place = project(tmp_path)
    folders = {"store": tmp_path / ".firmline/store", "build": tmp_path / "build"}

    def measured(*words: str, **variables: str) -> dict[str, Row]:
        with Workspace(root=place, **folders) as workspace:
            rows = measure(request(place, *words, **variables), workspace, ProgressDisplay(StringIO()), 2)
            # `fit` itself has tried the board with its arena_limit.
            assert not variables or workspace.made_keys or "arena_limit" in variables.get("set", "")
        return {row.board: row for row in rows}

    rows = measured("layer", "roomy,tight", "parts")
    assert {name: row.verdict for name, row in rows.items()} == {"roomy": FITS, "tight": TOO_LARGE, "parts": TOO_LARGE}

    report = run_recipe("layer", {"target": "roomy"}, root=place, **folders).report
    assert report is not None and [stage["kind"] for stage in report["stages"] if not stage["cached"]] == [
        *("verify", "report")
    ]
    roomy = rows["roomy"]
    assert (roomy.ram_bytes, roomy.rom_bytes) == (report["memory"]["ram_bytes"], report["memory"]["rom_bytes"])
    assert (roomy.ram_available_bytes, roomy.rom_available_bytes) == (128 << 10, 512 << 10)
    assert roomy.estimated_ms == report["estimated_cycles"]["milliseconds"]
    assert roomy.instructions == report["instructions"]["total"]

    with pytest.raises(StageFailed) as caught:
        run_recipe("layer", {"target": "tight"}, root=place, **folders)
    needs = {
        name: int(size.replace(",", "")) for name, size in re.findall(r"(\w+) needs ([\d,]+) bytes,", str(caught.value))
    }
    tight = rows["tight"]
    assert needs == {"rom": tight.rom_bytes, "ram": tight.ram_bytes}
    assert (tight.missing_rom_bytes, tight.missing_ram_bytes) == (needs["rom"] - (5 << 10), needs["ram"] - 9232)

    # The fast RAM has the stack and the smaller tensor. The larger one lies in the slow RAM, which is moved up for it.
    used = {region["name"]: region["used"] for region in rows["parts"].regions}
    assert used["slow"] > 4096 and used["fast"] <= 4096
    assert rows["parts"].missing_ram_bytes == used["slow"] - 2048

    # From the store, as JSON: no compiler runs again, also not for the boards that are too small.
    words = ("-P", "-m", "pipeline", "fit", "layer", "roomy,tight,parts", "--json")
    made = {path.name for path in (folders["store"] / "artifacts").glob("*/*")}
    records = json.loads(python(*words, cwd=tmp_path, env={"FIRMLINE_STORE": str(folders["store"])}).stdout)
    assert {path.name for path in (folders["store"] / "artifacts").glob("*/*")} == made
    assert [record["board"] for record in records] == [each.board for each in ordered(rows.values())]
    assert {record["board"]: (record["ram_bytes"], record["rom_bytes"]) for record in records} == {
        name: (each.ram_bytes, each.rom_bytes) for name, each in rows.items()
    }
    assert (tmp_path / "build/fit/layer.html").is_file()
    ram = roomy.regions[1]
    keys = ("name", "written", "used_bytes", "length_bytes", "same_as")
    assert records[0]["regions"][1] == dict(zip(keys, ("ram", True, ram["used"], 128 << 10, ""), strict=True))

    # More layers by rows, for more instructions, where the board has less RAM.
    large_between = convolutions((1, 12, 12, 2), ("wide", (16, 1, 1, 2)), ("narrow", (2, 1, 1, 16)))
    (place.root / "images.tflite").write_bytes(large_between)
    images = "stages.tensorize.count=off"
    rows = measured("roomy,small", model="images.tflite", set=images)
    small, default = rows["small"], rows["roomy"].arena_bytes
    assert small.verdict == FITS and small.arena_limit is not None
    assert small.arena_bytes is not None and default is not None and (small.extra or 0) > 0.005
    assert small.arena_bytes <= small.arena_limit < default
    limited = f"{images},memory.arena_limit={small.arena_limit}"
    assert measured("small", model="images.tflite", set=limited)["small"].ram_bytes == small.ram_bytes
    too_high = f"{images},memory.arena_limit={small.arena_limit + 4096}"
    assert measured("small", model="images.tflite", set=too_high)["small"].verdict == TOO_LARGE

    # A rule about a memory that only one board has.
    rows = measured("layer", "roomy,parts", set="memory.rules=[{part: scratch, region: slow}]")
    assert rows["roomy"].verdict == REFUSED and "slow" in rows["roomy"].reason


@pytest.mark.parametrize(
    ("words", "variables", "message"),
    [
        ((), {}, "no network is named: use `doit fit model=net.tflite`"),
        (("roomy",), {}, "no network is named"),
        (("layr",), {}, "unknown board or recipe 'layr'; did you mean 'layer'"),
        (("layer", "romy"), {}, "unknown board 'romy'; did you mean 'roomy'"),
        (("layer", "x*"), {}, "no board matches 'x[*]'"),
        (("layer", "net.tflite"), {}, "takes one network, got layer, net.tflite"),
        (("layer",), {"target": "host"}, "host has no memory sizes"),
        (("layer",), {"target": "roomy,nothing"}, "unknown board 'nothing'"),
        ((), {"recipe": "layer,other"}, "takes one recipe"),
        ((), {"recipe": "layr"}, "did you mean 'layer'"),
        (("gone.tflite",), {}, "gone.tflite: no such file"),
        ((), {"model": "gone.tflite"}, "gone.tflite: no such file"),
        ((), {"model": "models"}, f"{FOLDER}models in it: a.tflite, b.ONNX, c.onnx and 2 more$"),
        (("models",), {}, FOLDER),
        ((), {"recipe": "layer", "model": "models"}, FOLDER),
        ((), {"model": "recipes"}, "is a folder, not a file\\nit has no .tflite or .onnx file$"),
        (("text.tflite",), {}, "text.tflite"),
        ((), {"model": "zoo:ds_cn"}, "did you mean 'ds_cnn'"),
        (("net.tflite",), {"set": "stages.emit.weight=c"}, "weight"),
    ],
)  # fmt: skip
def test_bad_input(tmp_path: Path, words: tuple[str, ...], variables: Mapping[str, str], message: str) -> None:
    place = project(tmp_path)
    (place.root / "models").mkdir()
    for name in ("d.tflite", "a.tflite", "c.onnx", "e.onnx", "b.ONNX", "readme.md"):
        (place.root / "models" / name).touch()
    with pytest.raises(PipelineError, match=message) as caught:
        request(place, *words, **variables)
    assert len(str(caught.value).splitlines()) <= 5


def test_networks_and_boards_of_a_command_line(tmp_path: Path) -> None:
    place = project(tmp_path)
    boards = [target.name for target in load_targets(place).values() if target.board is not None]
    every = request(place, "net.tflite")
    assert [target.name for target in every.targets] == boards and not every.notes
    assert [target.name for target in request(place, "layer", "nucleo-f*", "cortex-m4").targets] == [
        *("nucleo-f446re", "nucleo-f746zg", "cortex-m4")
    ]
    calibrated = request(place, model="float.tflite")
    assert calibrated.notes == (CALIBRATED,) and calibrated.name == "float"
    loaded = calibrated.load(calibrated.targets[0], place, registry_of(place))
    assert "ptq" in [link.name for link in loaded.sequence]
    kept = request(place, model="float.tflite", set="stages.quantize.mode=prequantized")
    assert kept.notes == ()


def row(board: str, verdict: str = FITS, **fields: Any) -> Row:
    return replace(Row(board, "cortex-m4", f"the <{board}>", verdict), **fields)


def test_order_and_width_of_the_table() -> None:
    def used(share: float) -> list[dict[str, Any]]:
        return [{"name": "ram", "used": int(1000 * share), "length": 1000, "written": True, "same_as": ""}]

    rows = ordered(
        [
            row("refused", REFUSED, reason="tensorize: no kernel\nhint"),
            row("far", TOO_LARGE, missing_ram_bytes=1_000_000, missing_rom_bytes=9_999_999, ram_bytes=1_210_288),
            row("near", TOO_LARGE, missing_rom_bytes=16),
            row("full", instructions=2_864_207, regions=used(0.9)),
            row("empty", instructions=286_420_700, regions=used(0.1)),
            row("range", least_ms=900.0, most_ms=1000.0, least_uj=9900.0, most_uj=11000.0, regions=used(0.1)),
            row("slow", estimated_ms=1234.5, regions=used(0.1), arena_limit=6512, extra=0.0412),
            row(
                "stm32h747i-disco", estimated_ms=0.38, ram_bytes=1_210_288, ram_available_bytes=1 << 20, regions=used(1)
            ),
        ]
    )
    assert [each.board for each in rows] == [
        *("stm32h747i-disco", "range", "slow", "empty", "full", "near", "far", "refused")
    ]
    asked = Request("net", (), "net", {}, (CALIBRATED,))
    table = fit_table(asked, rows, 80)
    stream = StringIO()
    Console(file=stream, width=80, color_system=None).print(table)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80 and "…" not in stream.getvalue()
    plain = table.plain().splitlines()
    assert plain[0] == "net: fits 5 of 8 boards"
    assert re.split(r"\s{2,}", plain[2]) == ["fits", "stm32h747i-disco", "1,210,288 of 1M", "- of 0", "0.38 ms"]
    assert plain[3].endswith("900 to 1,000 ms  9,900 to 11,000 µJ")
    assert plain[-1] == "refused: tensorize: no kernel" and plain[-3] == f"note: {CALIBRATED}"
    assert (
        plain[4].startswith("fits, limited")
        and "slow: needs set=memory.arena_limit=6512 in doit run, which costs 4.1 % more instructions" in plain
    )
    page = fit_page(asked, rows)
    assert (
        "the &lt;near&gt;" in page
        and page.index("near") < page.index("far")
        and "does not fit, by 16 bytes ROM" in page
    )
