"""Files are written whole or not at all; those that killed processes were writing aside go, others stay."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stages.ir.models.resolve import resolve
from stages.ir.models.spec import UrlModel
from stages.support.system.atomic_write import remove_stale_files, temporary_name, write_atomically
from stages.support.system.loaded_code import RecordingLoader


def dead() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_names(tmp_path: Path) -> None:
    place = temporary_name(tmp_path / "report.json")
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
    remove_stale_files(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
    old = tmp_path / kept[0]
    os.utime(old, (time.time() - 100_000,) * 2)
    remove_stale_files(tmp_path)
    assert not old.exists()
    remove_stale_files(tmp_path / "none")


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    path.unlink()
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(path, b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def _download(folder: Path) -> Path:
    (folder / "x.tflite").write_bytes(b"model")
    digest = hashlib.sha256(b"model").hexdigest()
    resolve(UrlModel(url=(folder / "x.tflite").as_uri(), sha256=digest), cache_dir=folder)
    return folder / "models" / f"{digest}.tflite"


def _bytecode(folder: Path) -> Path:
    (folder / "probe.py").write_text("VALUE = 1\n")
    RecordingLoader("stages.probe", str(folder / "probe.py")).get_code("stages.probe")
    (made,) = (folder / "__pycache__").glob("*.pyc")
    return made


def _text(folder: Path) -> Path:
    write_atomically(folder / "costs" / "core.json", "{}")
    return folder / "costs" / "core.json"


@pytest.mark.parametrize("write", [_download, _bytecode, _text])
def test_who_writes_a_file_removes_what_was_left_of_it(
    write: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    made, gone = write(tmp_path), dead()
    left, other = made.with_name(f".{made.name}.{gone}.1"), made.with_name(f".other.{gone}.1")
    for path in (left, other):
        path.write_text("half")
    made.unlink()
    assert write(tmp_path) == made
    # What is no name of its own may be anybody's.
    assert sorted(path.name for path in made.parent.iterdir()) == sorted([other.name, made.name])
