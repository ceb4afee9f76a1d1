"""Temporary folders of killed processes go, those of living ones stay."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stages.support.system.scratch import clear_abandoned, make_folder, remove_folder, temporary_folder

ROOT = Path(__file__).resolve().parents[3]
_MAKE = """
import time
from stages.support.system.scratch import make_folder
print(make_folder("run"), flush=True)
time.sleep(600)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def other(place: Path) -> tuple[subprocess.Popen[str], Path]:
    environment = {**os.environ, "TMPDIR": str(place), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", _MAKE], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    (folder / "below").mkdir()
    (folder / "below/file").write_text("x")
    return process, folder


def test_folder_is_there_as_long_as_it_lasts(place: Path) -> None:
    with temporary_folder("compile") as folder:
        assert folder.parent == place and folder.name.startswith("firmline-compile-")
        clear_abandoned()
        assert folder.is_dir()
    assert list(place.iterdir()) == []


def test_only_what_a_killed_process_left_is_removed(place: Path) -> None:
    living, stays = other(place)
    killed, goes = other(place)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    mine = make_folder("run")
    clear_abandoned()
    assert stays.is_dir() and mine.is_dir() and not goes.exists()
    living.kill()
    living.communicate()
    clear_abandoned()
    assert not stays.exists()
    remove_folder(mine)
