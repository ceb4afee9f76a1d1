"""Files that killed runs were writing aside go, those of living ones stay."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from pipeline.asides import aside, clear_asides
from tests.unit.pipeline.conftest import FakeProject


def dead() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_names(tmp_path: Path) -> None:
    place = aside(tmp_path / "report.json")
    assert place.parent == tmp_path and place.name.startswith(f".report.json.{os.getpid()}.")


def test_only_those_of_processes_that_are_no_more(tmp_path: Path) -> None:
    gone = dead()
    for name in (f".a.json.{gone}.7", f".src.{gone}.7.old"):
        (tmp_path / name).write_text("")
    (tmp_path / f".src.{gone}.7").mkdir()
    (tmp_path / f".src.{gone}.7/file").write_text("")
    kept = [f".a.json.{os.getpid()}.7", f".b.json.{os.getppid()}.7", ".hidden", "a.json", f".gitignore.{gone}", "x.1.2"]
    for name in kept:
        (tmp_path / name).write_text("")
    clear_asides(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
    old = tmp_path / kept[0]
    os.utime(old, (time.time() - 100_000,) * 2)
    clear_asides(tmp_path)
    assert not old.exists()
    clear_asides(tmp_path / "none")


def test_runs_clear_the_store_and_the_build_folder(project: FakeProject) -> None:
    project.run()
    gone = dead()
    build = project.root / "build/demo/rv64-rvp"
    left = [
        project.store / f".digests.json.{gone}.1",
        project.store / "runs" / f".demo@host.json.{gone}.1",
        build / f".firmware.elf.{gone}.1",
        build / f".src.{gone}.1.old",
    ]
    for path in left:
        path.write_text("half")
    project.run()
    assert [path for path in left if path.exists()] == []
