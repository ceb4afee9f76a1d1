"""`doit calibrate`: what it refuses, and that it measures only what the table lacks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.commands.calibrate import calibrate
from pipeline.commands.calibrate_drawn import close
from pipeline.errors import PipelineError
from pipeline.project import Project
from stages.system.installation import INSTALLATION as ROOT

needs_arm = pytest.mark.skipif(
    not all(map(shutil.which, ("qemu-system-arm", "arm-none-eabi-gcc"))), reason="QEMU or the compiler is not installed"
)


def failure(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "doit", "calibrate", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert 1 <= len(lines) <= 5
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which target?"),
        (["target=rv64-rpv"], "did you mean 'rv64-rvp'"),
        (["target=nucleo-f446re"], "nucleo-f446re is a board, costs are its core's: doit calibrate target=cortex-m4"),
        (["target=host"], "target host counts no instructions"),
        (["target=rv64-rvp", "recipe=kws_rvp"], "did you mean 'recipes'"),
        (["target=rv64-rvp", "recipes=kws_rpv"], "kws_rvp"),
        (["target=rv64-rvp", "model=x.tflite"], "name them with recipes="),
        (["target=rv64-rvp", "drawn=many"], "drawn=many: should be a number from 1 to 2,000"),
        (["target=rv64-rvp", "drawn=5", "seed=-1"], "seed=-1: should be a number from 1 to"),
        (["target=rv64-rvp", "seed=5"], "seed= goes with drawn= or close=, as drawn=200"),
        (["target=rv64-rvp", "drawn=5", "recipes=kws_rvp"], "recipes= does not go with drawn="),
        (["target=rv64-rvp", "drawn=5", "--check"], "--check does not go with drawn="),
        (["target=rv64-rvp", "drawn=5", "--sample"], "--sample does not go with drawn="),
        (["target=rv64-rvp", "--sample", "--check"], "--sample goes with none of --all, --check and --cycles"),
        (["target=rv64-rvp", "drawn=5", "close=5"], "close= does not go with drawn="),
        (["target=rv64-rvp", "close=0"], "close=0: should be a number from 1 to 2,000"),
        (["target=rv64-rpv", "drawn=5"], "did you mean 'rv64-rvp'"),
        (["target=rv64-rvp", "drawn=5", "--cycles"], "--cycles does not go with drawn="),
        (["target=rv64-rvp", "--cycles"], "no timing model is known of rv64-rvp"),
        (["target=rv32-ne16", "--cycles"], "rv32-ne16 has an accelerator, whose own model counts cycles"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    assert message in failure(*arguments)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of this one's stages with one recipe, a single small layer, and no table."""
    shutil.copy(ROOT / "pipeline.yaml", tmp_path)
    shutil.copytree(ROOT / "stages", tmp_path / "stages", ignore=shutil.ignore_patterns("costs", "__pycache__"))
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "one.yaml").write_text(
        "schema: 1\nname: one\ntarget: rv32-rvp\nmodel: {op: conv2d, shape: [4, 4, 8], out_channels: 8}\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("target", "simulator"),
    [("rv32-rvp", "spike"), pytest.param("cortex-m4", "qemu-system-arm", marks=needs_arm)],
)
def test_a_second_calibration_measures_nothing_and_check_writes_nothing(
    project: Path, target: str, simulator: str
) -> None:
    log = project / "build" / "one" / target / "log.txt"
    log.parent.mkdir(parents=True)
    log.write_text("of its last run\n")
    before = calibrate(target, ("one",), check=True, root=project)
    assert before.cases == len(before.missing) >= 2
    assert not before.table.exists()
    first = calibrate(target, ("one",), root=project)
    assert (len(first.missing), first.entries) == (before.cases, before.cases)
    written = first.table.read_text()
    assert json.loads(written)["tools"].keys() == {"compiler", "tvm", simulator}
    assert calibrate(target, ("one",), root=project).missing == ()
    assert calibrate(target, ("one",), check=True, root=project).missing == ()
    calibrate(target, ("one",), again=True, root=project)
    assert first.table.read_text() == written
    assert log.read_text() == "of its last run\n"


@needs_arm
def test_cycles_are_measured_on_a_board_into_a_table_beside(project: Path) -> None:
    first = calibrate("nucleo-l4r5zi", ("one",), cycles=True, root=project)
    assert first.table == project / "stages/kernels/costs/cycles/nucleo-l4r5zi.json"
    assert len(first.missing) == first.entries >= 2
    written = first.table.read_text()
    content = json.loads(written)
    assert all(cycles > count for row in content["layers"].values() for count, cycles in row.values())
    assert calibrate("nucleo-l4r5zi", ("one",), cycles=True, check=True, root=project).missing == ()
    assert not (project / "stages/kernels/costs/cortex-m4.json").exists()
    again = calibrate("nucleo-l4r5zi", ("one",), cycles=True, again=True, root=project)
    assert again.entries == first.entries and first.table.read_text() == written

    content["kernels"]["generic.conv2d"] = "0" * 16
    first.table.write_text(json.dumps(content))
    checked = calibrate("nucleo-l4r5zi", ("one",), cycles=True, check=True, root=project)
    assert checked.stale == ("generic.conv2d",) and [one.split(" ")[0] for one in checked.missing] == ["generic.conv2d"]
    first.table.write_text(json.dumps({**content, "timing": "0" * 16}))
    assert len(calibrate("nucleo-l4r5zi", ("one",), cycles=True, check=True, root=project).missing) == first.entries


def test_a_changed_kernel_is_measured_again(project: Path) -> None:
    table = calibrate("rv32-rvp", ("one",), root=project).table
    current = table.read_text()
    content = json.loads(current)
    content["kernels"]["generic.conv2d"] = "0" * 16
    table.write_text(json.dumps(content))
    outcome = calibrate("rv32-rvp", ("one",), root=project)
    assert outcome.stale == ("generic.conv2d",)
    assert [line.split(":")[0] for line in outcome.missing] == ["generic.conv2d pixels=0"]
    assert json.loads(table.read_text())["kernels"] == json.loads(current)["kernels"]
    assert calibrate("rv32-rvp", ("one",), root=project, check=True).missing == ()


def test_a_sample_keeps_what_a_kernel_took_that_takes_it_still(project: Path) -> None:
    """And measures one that does not; what a stale table lacks is measured in any case."""
    table = calibrate("rv32-rvp", ("one",), root=project).table
    content = json.loads(table.read_text())
    current = dict(content["kernels"])
    content["kernels"] = dict.fromkeys(current, "0" * 16)
    (signature, row) = next(iter(content["layers"].items()))
    before = {name: entry[0] for name, entry in row.items() if name != "work"}
    changed, lacking, *others = before
    row[changed][0] += 1000
    del row[lacking]
    table.write_text(json.dumps(content))
    outcome = calibrate("rv32-rvp", ("one",), sample=True, root=project)
    assert (set(outcome.stale), outcome.missing) == (current.keys(), (f"{lacking}: {signature}",))
    content = json.loads(table.read_text())
    assert content["kernels"] == current
    after = {name: entry[0] for name, entry in content["layers"][signature].items() if name != "work"}
    assert after.keys() == before.keys() and others
    assert all(abs(after[name] - before[name]) <= 4 for name in before)


def test_close_layers_go_into_the_table(project: Path) -> None:
    with pytest.raises(PipelineError, match="rv32-rvp has no table yet: doit calibrate target=rv32-rvp"):
        close("rv32-rvp", 1, 5, root=project)
    table = calibrate("rv32-rvp", ("one",), root=project).table
    before = json.loads(table.read_text())
    outcome, wrong = close("rv32-rvp", 1, 5, root=project)
    after = json.loads(table.read_text())
    assert len(after["close"]) == 1 and "close" not in before
    assert before["layers"].items() <= after["layers"].items() and len(after["layers"]) > len(before["layers"])
    assert outcome.entries > outcome.cases >= 2 and wrong >= 0
    assert not calibrate("rv32-rvp", ("one",), check=True, root=project).missing


def test_an_unknown_target_is_an_error_from_python_too() -> None:
    with pytest.raises(PipelineError, match="unknown target 'cortex'"):
        calibrate("cortex")


def test_a_project_measures_into_a_table_of_its_own_that_begins_with_the_built_in_one(project: Path) -> None:
    built_in = calibrate("rv32-scalar", ("one",), root=project)
    written = built_in.table.read_bytes()
    own = Project(project / "own", project)
    (own.root / "recipes").mkdir(parents=True)
    (own.root / "recipes/two.yaml").write_text("schema: 1\nextends: one\nmodel: {shape: [5, 5, 8]}\n")
    assert not calibrate("rv32-scalar", ("one",), check=True, root=own).missing
    outcome = calibrate("rv32-scalar", ("two",), root=own)
    assert outcome.table == own.root / "costs/rv32-scalar.json"
    assert outcome.entries == built_in.entries + len(outcome.missing) > built_in.entries
    assert built_in.table.read_bytes() == written
    assert not calibrate("rv32-scalar", ("one", "two"), check=True, root=own).missing


def test_a_recipe_that_cannot_be_imported_is_told_and_left_out(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "broken.tflite").write_bytes(b"no network")
    (project / "recipes/broken.yaml").write_text("schema: 1\ntarget: rv32-rvp\nmodel: {file: broken.tflite}\n")
    monkeypatch.setattr("stages.calibrate.grid.grid", lambda: iter(()))
    monkeypatch.setattr("stages.calibrate.grid.awkward", lambda: ())
    assert calibrate("rv32-rvp", root=project, check=True).cases >= 1
    assert "warning: broken is left out: " in capsys.readouterr().err
    with pytest.raises(PipelineError, match=r"broken\.tflite"):
        calibrate("rv32-rvp", ("broken",), root=project, check=True)
