"""Randomly killed runs and corrupted stores never give wrong artifacts, locks or leftover files."""

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.artifacts.folders import remove
from pipeline.keys.explain import explain
from tests.unit.pipeline.conftest import FakeProject

# Seconds that a run may take before its lock counts as stuck.
PATIENCE = 120.0


def check_well(project: FakeProject, model: str) -> None:
    """Run again and check artifacts, build folder and leftover files."""
    process = project.start()
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    built = project.root / "build/demo/rv64-rvp"
    assert (built / "firmware.elf").read_text() == f"O2 4 {model}"
    assert (built / "src/model.c").read_text() == f"4 {model}"
    assert (built / "src/model.h").read_text() == "// header\n"
    json.loads((built / "report.json").read_text())
    leftovers = [
        *(project.store / "building").iterdir(),
        *project.store.glob(".*"),
        *(project.store / "runs").glob(".*"),
        *built.glob(".*"),
        *(project.root / "tmp").iterdir(),
    ]
    assert leftovers == []
    with project.workspace() as workspace:
        explained = explain(workspace.plan("demo"), workspace.store)
        assert [stage.kind for stage in explained if not stage.cached or stage.unless] == []
        for manifest in (project.store / "artifacts").glob("*/*/manifest.json"):
            if workspace.store.find(manifest.parent.name) is None:
                # A damaged artifact of an earlier model.
                remove(manifest.parent)


def test_killed_runs(project: FakeProject) -> None:
    """Kill one or two runs at a random time."""
    chance = random.Random(1)
    for number in range(4):
        model = f"weights {number}\n"
        project.write("model.txt", model)
        processes = [project.start(chance.choice(["", "slow"])) for _ in range(1 + number % 2)]
        # A run takes about half a second, most of it in Python's imports.
        time.sleep(chance.uniform(0.1, 1.4))
        for process in processes:
            if process.poll() is None:
                process.send_signal(chance.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM]))
        for process in processes:
            process.communicate(timeout=PATIENCE)
        check_well(project, model)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _flip_keeping_times(path: Path) -> None:
    info, content = path.stat(), bytearray(path.read_bytes() or b"x")
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def _garbage(path: Path) -> None:
    path.write_bytes(b"[" * 9999)


def _delete(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _become_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("x")


def _become_link(path: Path) -> None:
    _delete(path)
    path.symlink_to("/etc/hostname")


def _close(path: Path) -> None:
    path.chmod(0)


def _add(path: Path) -> None:
    ((path if path.is_dir() else path.parent) / "extra").write_text("x")


OF_FILES = (_truncate, _flip_keeping_times, _garbage, _become_folder)
OF_ALL = (_delete, _become_link, _close, _add)
PLACES: dict[str, tuple[Callable[[Path], None], ...]] = {
    "artifacts/*/*/files/*.*": OF_FILES + OF_ALL,
    "artifacts/*/*/manifest.json": OF_FILES + OF_ALL,
    "artifacts/*/*/log.txt": OF_FILES + OF_ALL,
    "artifacts/*/*": OF_ALL,
    "artifacts/*": OF_ALL,
    "locks/[0-9a-f]*.lock": OF_FILES + OF_ALL,
    "digests.json": OF_FILES + OF_ALL,
    "tools.json": OF_FILES + OF_ALL,
    "runs/*": OF_FILES + OF_ALL,
    "locks": (_delete, _add),
    "building": (_delete, _add),
}


@pytest.mark.parametrize("place", PLACES)
def test_corrupted_stores(project: FakeProject, place: str) -> None:
    """Damage the store at one place, then run."""
    chance = random.Random(place)
    check_well(project, "weights\n")
    for damage in chance.sample(PLACES[place], min(len(PLACES[place]), 2)):
        path = chance.choice(sorted(path for path in project.store.glob(place) if path.resolve() == path))
        for target in (path, path.parent):
            target.chmod(0o755)
        damage(path)
        check_well(project, "weights\n")
