"""Boards with an accelerator: which of its facts belong to the board, and messages for accelerators without a board."""

from pathlib import Path

import pytest

from pipeline.errors import RecipeError
from pipeline.plugins.discovery import plugins_of
from pipeline.project import Project
from pipeline.recipes.targets import load_targets
from stages.backends.targets.attached import Dma
from stages.backends.targets.places import accelerator_code, device_code
from tests.support.plugged import write

BOARD = """\
schema: 1
boards:
  with-toy:
    core: rv32-rvp
    title: a core with a toy beside it
    memory:
      rom: {origin: "0x80000000", length: 4M}
      l1: {origin: "0x20000000", length: 64K, holds: [arena]}
      ram: {origin: "0x90000000", length: 1M, speed: 1}
    accelerator:
      kind: toy
      memory: l1
      dma: {base: "0x00204000", bytes_per_cycle: 8, fixed_cycles: 10, run_cycles: 2, queue: 4}
"""


def project(folder: Path, text: str) -> Path:
    (folder / "recipes").mkdir()
    (folder / "plugins/accelerators/toy").mkdir(parents=True)
    (folder / "plugins/accelerators/toy/__init__.py").write_text("raise AssertionError('nothing imports it yet')\n")
    (folder / "pipeline.yaml").write_text(text)
    return folder


def test_a_target_has_the_accelerator_of_its_board(tmp_path: Path) -> None:
    target = load_targets(Project(project(tmp_path, BOARD)))["with-toy"]
    engine = target.accelerator
    assert engine is not None
    assert (engine.kind, engine.memory, engine.bytes) == ("toy", "l1", 64 << 10)
    assert engine.dma == Dma(base=0x204000, bytes_per_cycle=8, fixed_cycles=10, run_cycles=2, queue=4)
    assert target.modules["accelerators/toy"].endswith(".accelerators.toy")
    assert [room.region for room in target.capacities["arena"]] == ["l1", "ram"]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("kind: toy", "kind: tow", 11, "unknown accelerator 'tow'; did you mean 'toy'?"),
        ("memory: l1", "memory: l2", 12, "there is no region 'l2'; there are rom, l1, ram"),
        ("memory: l1", "memory: rom", 12,
         "rom holds code, constants, weights; an accelerator needs memory for the arena"),
        ("speed: 1}", "speed: 1, holds: [data, stack]}", 12, "l1 is the only memory for the arena"),
        ("bytes_per_cycle: 8", "bytes_per_cycle: 0", 13, "greater than 0"),
        (", bytes_per_cycle: 8", "", 13, "bytes_per_cycle"),
        ("0x00204000", "0x20000100", 13, "0x20000100 lies in the memory l1"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_a_board(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert BOARD.count(old) == 1
    with pytest.raises(RecipeError) as caught:
        load_targets(Project(project(tmp_path, BOARD.replace(old, new))))
    assert message in str(caught.value)
    assert caught.value.line == line


def test_parameters_that_the_accelerator_does_not_have(tmp_path: Path) -> None:
    kind = 'kind: ne16\n      parameters: {extention: tflite}\n      base: "0x00201000"'
    with pytest.raises(RecipeError) as caught:
        load_targets(Project(project(tmp_path, BOARD.replace("kind: toy", kind))))
    assert ":12:20: accelerator ne16: unknown key 'extention'; did you mean 'extension'?" in str(caught.value)
    assert "Parameters of ne16: extension" in str(caught.value)


def test_a_plug_ins_device_is_code_of_the_simulator_alone(tmp_path: Path) -> None:
    folder = project(tmp_path, BOARD)
    for name in ("toy.c", "device/toy.cc"):
        write(folder / "plugins/accelerators/toy", name, "")
    target = load_targets(Project(folder))["with-toy"]
    assert sorted(accelerator_code(target)) == ["accelerators/toy/__init__.py", "accelerators/toy/toy.c"]
    assert sorted(device_code(target)) == ["accelerators/toy/toy.cc"]


def test_an_accelerator_named_as_a_folder_of_kernels(tmp_path: Path) -> None:
    """Both are folders of the emitted sources, of one name."""
    folder = project(tmp_path, BOARD.replace("kind: toy", "kind: acme"))
    (folder / "plugins/accelerators/acme").mkdir()
    (folder / "plugins/accelerators/acme/__init__.py").write_text("")
    assert load_targets(Project(folder))["with-toy"].accelerator is not None
    (folder / "plugins/accelerators/acme").rename(folder / "plugins/accelerators/generic")
    (folder / "pipeline.yaml").write_text(BOARD.replace("kind: toy", "kind: generic"))
    plugins_of.cache_clear()
    with pytest.raises(RecipeError, match="accelerator 'generic' has the name of a folder of kernels or drivers"):
        load_targets(Project(folder))
