"""A network whose arena and weights are larger than any single memory of its target, on the real simulators."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from pipeline.api import run_recipe
from pipeline.commands.new_project import new_project
from pipeline.project import Project
from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.targets.memory import Memory, Reserve
from stages.backends.targets.spec import Target
from stages.backends.toolchain.compiler import Source
from stages.base import StageError
from stages.compile.blocks import own_sections
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.spec import FileModel, OpModel, ZooModel
from tests.support.emitted import ROOT, target_named
from tests.support.stages_run import run_stages

# resnet_8 has 50 KB of arena and 80 KB of weights: more than `dtcm`, and than what `rom` has beside code.
RISCV = {"rom": 0x80000000, "flash": 0x84000000, "dtcm": 0x90000000, "sdram": 0x98000000}
ARM = {"rom": 0, "flash": 0x100000, "dtcm": 0x20000000, "sdram": 0x60000000}
MODEL = ZooModel(zoo="resnet_8")
INPUTS = {"simulate": {"inputs": {"random": 1, "seed": 3, "extremes": False}}}


def with_memory(name: str, origins: dict[str, int], *without: str, **dtcm: Any) -> Target:
    target = target_named(name)
    regions: dict[str, dict[str, Any]] = {
        "rom": {"length": "96K", "holds": ["code", "constants", "weights"]},
        "flash": {"length": "512K", "speed": 1, "holds": ["weights"]},
        "dtcm": {"length": "16K", "holds": ["data", "stack", "arena"], **dtcm},
        "sdram": {"length": "1M", "speed": 1, "holds": ["arena"]},
    }
    placed = {n: {"origin": origins[n], **region} for n, region in regions.items() if n not in without}
    return target.model_copy(update={"memory": Memory.model_validate({**placed, "stack": 4096})})


@pytest.mark.parametrize("arena", ["static", "caller"])
@pytest.mark.parametrize(("name", "origins"), [("rv32-rvp", RISCV), ("cortex-m7", ARM)])
def test_every_byte_of_a_network_over_four_memories(
    tmp_path: Path, name: str, origins: dict[str, int], arena: str
) -> None:
    target = with_memory(name, origins)
    made = run_stages(MODEL, target, tmp_path, until="report", configs={**INPUTS, "emit": {"arena": arena}})
    report = json.loads((made["report"] / "report.json").read_text())
    assert report["verify"]["mismatches"] == 0 and report["verify"]["layers_checked"] == 16
    memory = report["memory"]
    blocks = {block["symbol"]: block for block in memory["blocks"]}
    assert set(blocks) == {"model_arena_dtcm", "model_arena_sdram", "model_weights_rom", "model_weights_flash"}
    assert sum(block["bytes"] for block in blocks.values()) == memory["arena_bytes"] + memory["weights_bytes"]
    assert all(block["bytes"] > 4000 for block in blocks.values())
    assert target.memory is not None
    regions = target.memory.regions
    with (made["compile"] / "firmware.elf").open("rb") as handle:
        table: Any = ELFFile(handle).get_section_by_name(".symtab")
        for symbol, block in blocks.items():
            (entry,) = table.get_symbol_by_name(symbol)
            region = regions[block["region"]]
            assert region.origin <= entry["st_value"] <= region.end - block["bytes"]
    for used in memory["regions"]:
        there = [block["bytes"] for block in blocks.values() if block["region"] == used["name"]]
        assert sum(there) <= used["used"] <= used["length"]
    assert {row["region"] for row in report["arena"]} == {"dtcm", "sdram"}
    page = (made["report"] / "report.md").read_text()
    sizes = [f"{block['region']} {block['bytes']:,}" for block in blocks.values() if block["part"] == "arena"]
    assert f"({', '.join(sizes)})" in page


CHECK_COPY = """
#include "bench.h"
#include "board.h"
extern const uint8_t model_weights_dtcm[];
int main(void)
{
    static uint8_t expected[BYTES];
    unsigned wrong = 0;
    if (board_read(board_open_read("expected.bin"), expected, BYTES) != 0)
        return 1;
    for (unsigned i = 0; i < BYTES; i++)
        wrong += model_weights_dtcm[i] != expected[i];
    printf("%u wrong at %lx", wrong, (unsigned long)(uintptr_t)model_weights_dtcm);
    return 0;
}
"""


@pytest.mark.parametrize("weights", ["incbin", "c"])
@pytest.mark.parametrize(("name", "origins"), [("rv32-rvp", RISCV), ("rv64-scalar", RISCV), ("cortex-m7", ARM)])
def test_weights_that_rules_put_into_ram_are_copied_there_at_start(
    tmp_path: Path, name: str, origins: dict[str, int], weights: str
) -> None:
    """They are loaded into ROM alone, take room in both, and every byte of them is in RAM before anything runs."""
    target = with_memory(name, origins, "flash", length="64K", holds=["data", "stack", "arena", "weights"])
    assert target.memory is not None
    rules = [{"match": {"name": "second"}, "part": "weights", "region": "dtcm"}]
    configs = {**INPUTS, "emit": {"weights": weights, "memory_rules": rules}}
    made = run_stages(two_layers(tmp_path), target, tmp_path, until="report", configs=configs)
    report = json.loads((made["report"] / "report.json").read_text())
    assert report["verify"]["mismatches"] == 0 and report["verify"]["layers_checked"] == 2
    blocks = {block["symbol"]: block for block in report["memory"]["blocks"]}
    copied = blocks["model_weights_dtcm"]
    region = target.memory.regions["dtcm"]
    assert copied["loaded_from"] == "rom" and region.contains(copied["address"])
    assert blocks["model_weights_rom"]["loaded_from"] == "" and copied["bytes"] >= 640
    there = {row["layers"][0] for row in report["weights"] if row["region"] == "dtcm"}
    assert there == {1} and {row["region"] for row in report["weights"] if row["layers"] == [0]} == {"rom"}
    page = (made["report"] / "report.md").read_text()
    assert f"dtcm {copied['bytes']:,} copied from rom at start)" in page
    sizes = json.loads((made["compile"] / "sizes.json").read_text())
    used = {row["name"]: row["used"] for row in sizes["regions"]}
    assert used["rom"] == sizes["rom_bytes"] and sizes["data"] >= copied["bytes"]
    assert used["rom"] + used["dtcm"] == sizes["rom_bytes"] + sizes["ram_bytes"]
    with (made["compile"] / "firmware.elf").open("rb") as handle:
        for segment in ELFFile(handle).iter_segments("PT_LOAD"):
            assert not segment["p_filesz"] or target.memory.name_of(segment["p_paddr"]) == "rom"
    model = json.loads((made["emit"] / "model.json").read_text())
    src = made["emit"] / "src"
    run = compile_and_run_c(
        target,
        [Source(src / ("weights.c" if weights == "c" else "weights.S"))],
        CHECK_COPY,
        include=[src],
        flags=["-O1", f"-DBYTES={copied['bytes']}", *own_sections(model, target)],
        files={"expected.bin": constants_in(made["emit"], "dtcm")},
    )
    start = int(run.stdout.rpartition(" ")[2], 16)
    assert run.stdout.startswith("0 wrong at ") and region.origin <= start <= region.end - copied["bytes"]


def two_layers(folder: Path) -> FileModel:
    b = ModelBuilder()
    x = b.input("x", (1, 32), "int8", 0.05, -3)
    random = np.random.default_rng(5)
    for name, units in (("first", 64), ("second", 10)):
        weights = random.integers(-127, 128, (units, x.shape[-1]), dtype=np.int8)
        x = b.fully_connected(x, weights, weight_scale=0.003, out=(0.05, -3), name=name)
    b.output(x)
    (folder / "net.tflite").write_bytes(b.build())
    return FileModel(file=str(folder / "net.tflite"))


def constants_in(emitted: Path, region: str) -> bytes:
    """A block of weights, from the file that the sources were made with."""
    binary = emitted / "src" / f"weights_{region}.bin"
    if binary.is_file():
        return binary.read_bytes()
    text = (emitted / "src/weights.c").read_text().partition(f"model_weights_{region}[")[2].partition("{")[2]
    return bytes(int(byte) for byte in text.partition("}")[0].replace(",", " ").split())


def test_code_that_needs_more_than_its_reserve(tmp_path: Path) -> None:
    target = with_memory("rv32-rvp", RISCV)
    assert target.memory is not None
    reserve = Reserve(code=1024, data=4096)
    target = target.model_copy(update={"memory": target.memory.model_copy(update={"reserve": reserve})})
    with pytest.raises(StageError) as caught:
        run_stages(MODEL, target, tmp_path, until="compile", configs={"tensorize": {"streaming": False}})
    lines = str(caught.value).splitlines()
    assert "rom needs " in lines[0] and "arena 55,552 (dtcm 6,400, sdram 49,152), stack" in lines[1]
    assert lines[-1].startswith("raise memory.reserve of rv32-rvp in pipeline.yaml (code 1,024, data 4,096 bytes)")


def test_the_pages_example_is_right(tmp_path: Path) -> None:
    """Its board and its rules, as they are printed, in a project of one's own."""
    section = (ROOT / "docs/reference/targets.md").read_text().partition("\n## Memories\n")[2].partition("\n## ")[0]
    board, rules, *_ = re.findall(r"^```yaml\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    new_project(tmp_path / "net", target="cortex-m7")
    project = Project(tmp_path / "net")
    (project.root / "pipeline.yaml").write_text(f"schema: 1\n{board}")
    recipe = project.root / "recipes/net.yaml"
    inputs = "stages: {simulate: {inputs: {random: 1, extremes: false}}}\n"
    recipe.write_text(f"schema: 1\ntarget: my-board\nmodel: {{zoo: ds_cnn}}\n{inputs}{rules}")
    target_named("stm32h747i-disco")
    done = run_recipe("net", root=project)
    assert done.report is not None
    assert done.report["verify"]["mismatches"] == 0
    regions = {(block["part"], block["region"]) for block in done.report["memory"]["blocks"]}
    assert {("weights", "rom"), ("weights", "dtcm"), ("weights", "qspi"), ("arena", "dtcm")} == regions
    used = {row["name"]: row["used"] for row in done.report["memory"]["regions"]}
    assert used["axi_sram"] == 8192


def test_what_rules_put_into_a_region_is_what_to_put_elsewhere(tmp_path: Path) -> None:
    """More is reserved than the rules leave, which memory.reserve cannot mend."""
    target = with_memory("rv32-rvp", RISCV, "flash", length="5K")
    rules = [{"match": {"name": "*"}, "part": "tensors", "region": "dtcm"}]
    model = OpModel(op="fully_connected", shape=(800,), out_channels=8)
    with pytest.raises(StageError) as caught:
        run_stages(model, target, tmp_path, until="compile", configs={"emit": {"memory_rules": rules}})
    lines = str(caught.value).splitlines()
    assert "dtcm needs " in lines[0]
    assert lines[-1].startswith("rule 1 of the recipe's memory.rules put arena ")
