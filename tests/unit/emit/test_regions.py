"""A model over several memories of its target: what lies where, and that the sources compute the same."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.backends.targets.memory import Memory
from stages.backends.targets.memory_rules import MemoryRule
from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.emit import STAGE, EmitConfig
from stages.emit.placement import Placer
from stages.ir.graph.layer_rules import LayerMatch
from stages.ir.models.spec import FileModel
from stages.lower.arena import liveness
from stages.lower.arena.rules import Contents
from tests.firmware.test_offload import with_toy
from tests.support.emitted import run_emitted, target_named
from tests.support.kernels.mini import mini_graph, mini_reference
from tests.support.mini_emit import emit_mini


def target_with(*, dtcm: int = 64, sram: int = 4096, flash: int = 128, qspi: int = 4096) -> Target:
    """The host with a memory map: the arena in dtcm and sram, weights in flash and qspi, in bytes beside the others."""
    regions = {
        "flash": {"origin": 0, "length": 1024 + flash, "holds": ["code", "constants", "weights"]},
        "qspi": {"origin": 1 << 20, "length": qspi, "speed": 1, "holds": ["weights"]},
        "dtcm": {"origin": 2 << 20, "length": 512 + dtcm, "holds": ["data", "stack", "arena"]},
        "sram": {"origin": 3 << 20, "length": sram, "speed": 1, "holds": ["arena"]},
        "stack": 256,
        "reserve": {"code": min(1024, 1024 + flash), "data": 256},
    }
    return target_named("host").model_copy(update={"memory": Memory.model_validate(regions)})


def regions_of(described: dict[str, Any]) -> dict[str, str]:
    return {row["name"]: row["region"] for row in described["arena"]}


def blocks_of(described: dict[str, Any]) -> dict[str, int]:
    return {f"{block['part']} {block['region']}": block["bytes"] for block in described["blocks"]}


def assert_exact(emitted: Path) -> None:
    x = np.random.default_rng(1).integers(-128, 128, (8, 12)).astype(np.int8)
    (found,) = run_emitted(emitted, target_named("host"), [[x]])
    first, last = mini_reference(mini_graph(), x)
    np.testing.assert_array_equal(found.outputs[0], last)
    np.testing.assert_array_equal(found.traces["dense_0"], first)


def test_a_model_that_fits_the_fastest_regions_has_the_sources_of_any_target(tmp_path: Path) -> None:
    """But for what is linked where, which model.json says: so both have one golden copy."""
    one = emit_mini(tmp_path / "one")
    other = emit_mini(tmp_path / "other", target=target_with(dtcm=4096, flash=4096))
    assert blocks_of(other) == {"arena dtcm": one["arena_bytes"], "weights flash": one["weights_bytes"]}
    assert [row | {"region": ""} for row in other["arena"]] == one["arena"]
    for path in (tmp_path / "one/emitted/src").rglob("*.*"):
        assert (tmp_path / "other/emitted/src" / path.relative_to(tmp_path / "one/emitted/src")).read_bytes() == (
            path.read_bytes()
        )


def test_what_is_reserved_is_taken_before_a_model_is_refused(tmp_path: Path) -> None:
    """Small as the variables may be, only the linker knows."""
    described = emit_mini(tmp_path, target=target_with(dtcm=0, sram=96))
    assert blocks_of(described) == {"arena dtcm": 240, "weights flash": 104, "weights qspi": 52}


@pytest.mark.parametrize("weights", ["c", "incbin"])
@pytest.mark.parametrize("memories", [1, 2])
def test_each_block_has_a_section_of_the_users(tmp_path: Path, memories: int, weights: str) -> None:
    target = target_with() if memories == 2 else target_named("rv32-rvp")
    described = emit_mini(tmp_path, target=target, weights=weights)
    src = tmp_path / "emitted/src"
    for file, part in (("model.c", "arena"), ("weights.c" if weights == "c" else "weights.S", "weights")):
        blocks = [block for block in described["blocks"] if block["part"] == part]
        sections = {
            block["symbol"]: f".{'bss' if part == 'arena' else 'rodata'}.{number}"
            for number, block in enumerate(blocks)
        }
        flags = [f'-D{block["section_macro"]}="{sections[block["symbol"]]}"' for block in blocks]
        made = tmp_path / f"{file}.o"
        subprocess.run(["gcc", *flags, f"-I{src}", "-c", str(src / file), "-o", str(made)], check=True)
        table = subprocess.run(["objdump", "-t", str(made)], capture_output=True, text=True, check=True).stdout
        found = {line.split()[-1]: line.split() for line in table.splitlines() if line.split()[-1:]}
        assert len(sections) == memories
        for symbol, section in sections.items():
            assert section in found[symbol]


def rule(region: str, part: Any = None, **match: Any) -> MemoryRule:
    return MemoryRule(match=LayerMatch(**match), part=part, region=region)


def test_rules_come_before_the_planner(tmp_path: Path) -> None:
    """The first that matches decides; without a part it is for all that the region may hold."""
    rules = (
        rule("sram", name="dense_1"),
        rule("dtcm", "tensors", name="dense_*"),
        rule("qspi", op="fully_connected"),
        rule("flash", "weights", name="dense_0"),
        rule("dtcm", name="dense_7"),
        rule("sram", name="x"),
    )
    target = target_with(dtcm=4096, flash=4096)
    described = emit_mini(tmp_path, target=target, memory_rules=rules)
    there = {"dtcm": ["dense_0", "scratch:0:copy"], "sram": ["dense_1", "scratch:1:copy", "x"]}
    assert regions_of(described) == {name: region for region, names in there.items() for name in names}
    assert set(blocks_of(described)) == {"arena dtcm", "arena sram", "weights qspi"}
    assert described["warnings"] == [
        "memory rule 4 ({name: dense_0} weights -> flash) decides nothing: an earlier rule matches all of its layers",
        "memory rule 5 ({name: dense_7} -> dtcm) matches no layer",
    ]
    assert_exact(tmp_path / "emitted")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (rule("dtmc"), "memory rule 2: host has no region 'dtmc'; did you mean 'dtcm'?"),
        (rule("ccm"), "memory rule 2: host has no region 'ccm'; it has flash, qspi, dtcm, sram"),
        (rule("qspi", "scratch"), "memory rule 2: qspi of host may hold weights, but not scratch; dtcm and sram may"),
    ],
)
def test_rule_that_no_region_can_obey(wrong: MemoryRule, message: str) -> None:
    """Said before anything runs, at the rule."""
    config = EmitConfig(memory_rules=(rule("dtcm"), wrong))
    with pytest.raises(StageError) as caught:
        STAGE.preflight(config, FileModel(file="net.tflite"), target_with(), Path(), {})
    assert str(caught.value) == message
    assert caught.value.at == ("memory", "rules", 1, "region")


def copying(*, dtcm: int = 64, flash: int = 4096) -> Target:
    """`target_with`, whose dtcm may hold weights, which are then kept in flash too."""
    target = target_with(dtcm=dtcm, flash=flash)
    memory = target.memory
    assert memory is not None
    fields = memory.model_dump()
    fields["dtcm"]["holds"] = ["data", "stack", "arena", "weights"]
    return target.model_copy(update={"memory": Memory.model_validate(fields)})


def test_weights_go_to_a_region_that_is_written_where_a_rule_names_them(tmp_path: Path) -> None:
    """A rule without a part moves what is written anyhow: a copy takes room twice, and nobody asked for it."""
    (tmp_path / "plain").mkdir()
    plain = emit_mini(tmp_path / "plain", target=copying(dtcm=4096), memory_rules=(rule("dtcm"),))
    assert {block["region"] for block in plain["blocks"] if block["part"] == "weights"} == {"flash"}
    rules = (rule("dtcm", "weights", name="dense_1"),)
    described = emit_mini(tmp_path, target=copying(dtcm=4096), memory_rules=rules)
    blocks = {block["region"]: block for block in described["blocks"] if block["part"] == "weights"}
    assert {region: block["loaded_from"] for region, block in blocks.items()} == {"flash": "", "dtcm": "flash"}
    assert (blocks["dtcm"]["rules"], blocks["flash"]["rules"]) == ([1], [])
    by_layer = {row["layers"][0]: row["region"] for row in described["constants"]}
    assert by_layer == {0: "flash", 1: "dtcm"}
    header = (tmp_path / "emitted/src/weights.h").read_text()
    assert "Constants for memory dtcm. Compile with -DMODEL_WEIGHTS_DTCM_SECTION" in header
    assert "MODEL_WEIGHTS_FLASH_SECTION" not in header
    assert "model_weights_dtcm belong in memory dtcm" in (tmp_path / "emitted/src/model.h").read_text()
    assert_exact(tmp_path / "emitted")


@pytest.mark.parametrize(
    ("dtcm", "flash", "told"),
    [
        (-192, 4096, "memory rule 1: dtcm has 64 bytes for arena and weights, but rules put "),
        (4096, -1008, "memory rule 1: weights that are copied to dtcm are also in flash, which has 16 bytes; rules"),
    ],
)
def test_weights_that_a_region_has_no_room_for(tmp_path: Path, dtcm: int, flash: int, told: str) -> None:
    target = copying(dtcm=dtcm, flash=flash)
    with pytest.raises(StageError) as caught:
        emit_mini(tmp_path, target=target, memory_rules=(rule("dtcm", "weights"),))
    assert told in str(caught.value)
    assert caught.value.at == ("memory", "rules", 0, "region")


def placed(*rules: MemoryRule, l1: int = 64 << 10) -> dict[str, list[str]]:
    """Names of buffers by region, where the first layer's output and its scratch are planned into L1."""
    graph = mini_graph(units=(6, 5))
    scratch = {0: {"sums": 256}}
    contents = Contents(graph, liveness(graph, scratch), scratch, {})
    planned = {"l1": frozenset({graph.layers[0].outputs[0], "scratch:0:sums"})}
    constants: dict[str, np.ndarray] = {}
    made: Any = Placer(contents, constants, frozenset(), 16, with_toy(l1), rules, planned).place()
    return {arena.region: sorted(buffer.name for buffer in arena.plan.buffers) for arena in made.arenas}


def test_what_is_planned_lies_there_and_nothing_else_does() -> None:
    found = placed()
    graph = mini_graph(units=(6, 5))
    assert found["l1"] == sorted([graph.layers[0].outputs[0], "scratch:0:sums"])
    assert graph.inputs[0] in found["ram"] and graph.outputs[0] in found["ram"]


@pytest.mark.parametrize(("part", "region"), [("scratch", "ram"), ("tensors", "l1")])
def test_a_rule_that_says_otherwise_is_refused(part: Any, region: str) -> None:
    rule = MemoryRule(match=LayerMatch(), part=part, region=region)
    with pytest.raises(StageError, match=r"memory rule 1 cannot put .* is planned with the accelerator's layers"):
        placed(rule)


def test_a_plan_that_does_not_fit_is_reported_with_sizes() -> None:
    with pytest.raises(StageError, match="does not fit the target's memory"):
        placed(l1=256)
