"""Cycles of a board in the project's silicon.yaml: added, replaced, and refused without a loss."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import PipelineError
from pipeline.project import Project
from pipeline.recipes.silicon import FILE, load_own, load_silicon
from pipeline.runs import record_measurement as module
from pipeline.runs.record_measurement import record_measurement
from stages.support.system.installation import INSTALLATION

BOARD = {"title": "ST Nucleo", "core": "cortex-m4", "clock": 180_000_000, "source": "RM0390"}
RAN = {"simulator": "", "counter": "cycles by DWT", "chip": ["CPUID 0xc240"]}
OWN = """\
# Größen: ours
schema: 1
measurements:   # by hand
- chip: mine   # our part
  {keys: kept}
  cycles: 5
chips:
    mine: {title: My board, core: cortex-m4, clock: 80M, source: data sheet}   # the first
""".replace("{keys: kept}", "code: firmline\n  version: '1'\n  compiler: GCC 14\n  run: kws\n  source: measured")


def record(root: Path, cycles: int = 1000, firmware: bytes = b"elf", **changes: Any) -> str:
    (root / "firmware.elf").write_bytes(firmware)
    report = {"ran": RAN, "board": BOARD, "target": "nucleo-f446re", "instructions": {"total": cycles}, **changes}
    typed = ("run_on=gdb://here:1", "set=stages.compile.optimize=-Os")
    return record_measurement(report, root / "firmware.elf", Project(root, INSTALLATION), "kws", typed, "gcc 12.2")


@pytest.mark.parametrize(
    "text",
    [
        None,
        "schema: 1\n",
        "schema: 1\nchips: {}   # none\nmeasurements: []\n",
        OWN,
        f"schema: 1\nchips: {{{OWN.splitlines()[-1].partition('#')[0].strip()}}}\n",
    ],
)
def test_a_run_adds_a_row_and_a_run_of_the_same_firmware_replaces_it(tmp_path: Path, text: str | None) -> None:
    path, before = tmp_path / FILE, 0
    if text is not None:
        path.write_text(text)
        before = len(load_own(Project(tmp_path, INSTALLATION))[1].measurements)  # type: ignore[union-attr]
    assert record(tmp_path) == "1,000 cycles of kws on nucleo-f446re, in silicon.yaml"
    assert record(tmp_path, 2000).startswith("2,000 cycles")
    assert record(tmp_path, 3000, b"another").startswith("3,000 cycles")
    content = path.read_text()
    assert all(line in content for line in (text or "").splitlines() if "#" in line and "none" not in line)
    silicon = load_silicon(Project(tmp_path, INSTALLATION))
    own = [row for row in silicon.measurements if row.chip == "nucleo-f446re-reset"]
    assert sorted(row.cycles or 0 for row in own) == [2000, 3000]
    assert own[0].arguments == {"options": "set=stages.compile.optimize=-Os"} and "CPUID 0xc240" in own[0].source
    chip = silicon.chips["nucleo-f446re-reset"]
    assert (chip.core, chip.clock, chip.flash) == ("cortex-m4", 180_000_000, None)
    assert len(silicon.measurements) == len(load_silicon(INSTALLATION).measurements) + before + 2


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ran": None}, ""),
        ({"ran": {**RAN, "simulator": "QEMU"}}, ""),
        ({"board": None}, "not in silicon.yaml: the target is no board with a clock"),
        ({"cycles": 0}, "not in silicon.yaml: the counter did not change"),
    ],
)
def test_what_is_no_measurement_is_not_recorded(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    assert record(tmp_path, **changes) == told and not (tmp_path / FILE).exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schema: 1\nmeasurements: [\n", "silicon.yaml:2:1: YAML syntax"),
        (OWN.replace("cycles: 5", "us: 5"), "silicon.yaml:10:3: unknown key 'us'"),
        ("{schema: 1}\n", "cannot add a row: silicon.yaml is one mapping in braces"),
    ],
)
def test_a_broken_file_stays_as_it_is(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(PipelineError) as caught:
        record(tmp_path)
    assert str(caught.value).startswith(message)
    assert (tmp_path / FILE).read_text() == text


def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / FILE).write_text(OWN)
    monkeypatch.setattr(module.os, "access", lambda *_: False)
    with pytest.raises(PipelineError, match=r"silicon\.yaml cannot be written: Permission denied") as caught:
        record(tmp_path)
    assert "cycles: 1000" in caught.value.hint and (tmp_path / FILE).read_text() == OWN
