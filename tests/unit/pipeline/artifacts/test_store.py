"""The store by itself."""

import errno
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.artifacts.folders import remove
from pipeline.artifacts.inventory import damages, inventory
from pipeline.artifacts.manifest import MOST_BYTES
from pipeline.artifacts.store import Artifact, Store
from pipeline.errors import DiskFullError, StoreError

Log = Callable[[str], None]


def ingredients(**parameters: Any) -> dict[str, Any]:
    return {"stage": "emit", "parameters": parameters}


def write(out: Path, log: Log) -> None:
    (out / "sub").mkdir()
    (out / "sub" / "a.c").write_text("int a;\n")
    (out / "run.sh").write_text("#!/bin/sh\n")
    (out / "run.sh").chmod(0o755)
    log("wrote a.c")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def make(store: Store, n: int = 0, **options: Any) -> Artifact:
    return store.make(ingredients(n=n), write, recipe="demo", **options)[0]


def test_manifest_says_what_it_is(store: Store) -> None:
    artifact = make(store, 3)
    manifest = json.loads((artifact.folder / "manifest.json").read_text())
    assert manifest["key"] == artifact.folder.name == artifact.key
    assert (manifest["stage"], manifest["recipe"]) == ("emit", "demo")
    assert manifest["ingredients"] == ingredients(n=3)
    assert manifest["files"]["sub/a.c"]["size"] == 7
    assert len(manifest["files"]["sub/a.c"]["sha256"]) == 64
    assert list(manifest["files"]) == ["run.sh", "sub/a.c"]
    assert manifest["seconds"] >= 0
    assert artifact.log == "wrote a.c\n"


def test_files_are_read_only_and_keep_the_executable_bit(store: Store) -> None:
    artifact = make(store)
    assert (artifact.files / "sub/a.c").stat().st_mode & 0o777 == 0o444
    assert (artifact.files / "run.sh").stat().st_mode & 0o777 == 0o555


def test_made_once_unless_forced(store: Store) -> None:
    artifact = make(store)
    again = Store(store.folder).find(artifact.key)
    assert again is not None and again.folder == artifact.folder and store.find("0" * 64) is None
    artifact, cached = store.make(ingredients(n=0), write, recipe="demo")
    assert cached and artifact.folder == artifact.folder
    inode = (artifact.files / "sub/a.c").stat().st_ino
    _, cached = store.make(ingredients(n=0), write, recipe="demo", force=True)
    assert not cached
    assert (artifact.files / "sub/a.c").stat().st_ino != inode


def test_failure_leaves_what_was_there(store: Store) -> None:
    def fail(out: Path, log: Log) -> None:
        (out / "half").write_text("")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        store.make(ingredients(), fail, recipe="demo")
    assert list((store.folder / "building").iterdir()) == []
    assert list((store.folder / "artifacts").iterdir()) == []
    artifact = make(store)
    with pytest.raises(RuntimeError):
        store.make(ingredients(n=0), fail, recipe="demo", force=True)
    assert store.find(artifact.key) is not None


def test_full_disk_while_finishing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFullError, match="no space left for the artifact store"):
        make(store)
    assert list((store.folder / "building").iterdir()) == []
    monkeypatch.undo()
    assert make(store).files.is_dir()


def test_link_is_no_content(store: Store) -> None:
    def link(out: Path, log: Log) -> None:
        (out / "link").symlink_to("/etc/hostname")

    with pytest.raises(StoreError, match="link: an artifact may only have regular files"):
        store.make(ingredients(), link, recipe="demo")


@pytest.mark.parametrize("place", ["artifact", "two digits", "lock"])
def test_a_link_that_leads_out_of_the_store_is_replaced(store: Store, tmp_path: Path, place: str) -> None:
    """Damage as any other: the artifact is made again, and nothing outside changes."""
    artifact = make(store)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    lock = store.folder / "locks" / f"{artifact.key}.lock"
    link = {"artifact": artifact.folder, "two digits": artifact.folder.parent, "lock": lock}[place]
    remove(link)
    link.symlink_to(outside / "kept.lock" if place == "lock" else outside)
    if place == "lock":
        remove(artifact.folder)
    assert store.find(make(store).key) is not None and not link.is_symlink()
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"kept": "kept"}


def test_store_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be used: Not a directory\nset FIRMLINE_STORE"):
        Store(tmp_path / "file" / "store")


@pytest.mark.parametrize(
    ("flags", "why"), [(os.ST_RDONLY, "Read-only file system"), (os.ST_NOSUID, "Permission denied")]
)
def test_why_a_store_is_only_read(store: Store, flags: int, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=flags))
    with pytest.raises(StoreError, match=rf"cannot be written \({why}\)"):
        make(Store(store.folder))


def test_loser_of_a_race_takes_the_winners_artifact(store: Store) -> None:
    started, waited, artifacts = threading.Event(), threading.Event(), []

    def slow(out: Path, log: Log) -> None:
        started.set()
        assert waited.wait(60)
        artifacts.append("winner")

    def lose(out: Path, log: Log) -> None:
        artifacts.append("loser")

    winner = threading.Thread(target=lambda: store.make(ingredients(), slow, recipe="demo"))
    winner.start()
    assert started.wait(60)
    _, cached = Store(store.folder).make(ingredients(), lose, recipe="demo", waiting=waited.set)
    winner.join()
    assert cached
    assert artifacts == ["winner"]


def test_trim_by_age(store: Store) -> None:
    old, young = make(store, 1), make(store, 2)
    os.utime(old.folder, (time.time() - 10 * 86400,) * 2)
    size = sum(path.stat().st_size for path in old.folder.rglob("*") if path.is_file())
    assert store.trim(days=7) == (1, size)
    assert store.find(old.key) is None
    assert store.find(young.key) is not None
    for age, gone in ((7 * 86400 - 60, False), (7 * 86400 + 60, True)):
        os.utime(young.folder, (time.time() - age,) * 2)
        store.trim(days=7)
        assert (store.find(young.key) is None) == gone
    assert list((store.folder / "building").iterdir()) == []


def test_use_renews_the_age(store: Store) -> None:
    """To the day."""
    artifact = make(store)
    os.utime(artifact.folder, (time.time() - 1.1 * 86400,) * 2)
    store.mark_used(artifact)
    assert store.trim(days=1)[0] == 0


def test_trim_by_size_takes_the_oldest(store: Store) -> None:
    artifacts = [make(store, n) for n in range(3)]
    for age, artifact in enumerate(reversed(artifacts)):
        os.utime(artifact.folder, (time.time() - 100 * (age + 1),) * 2)
    files = [path for artifact in artifacts for path in artifact.folder.rglob("*") if path.is_file()]
    total = sum(path.stat().st_size for path in files)
    assert store.trim(size=total)[0] == 0
    assert store.trim(size=total - 1)[0] == 1
    assert [store.find(artifact.key) is not None for artifact in artifacts] == [False, True, True]


def test_trim_waits_for_no_run(store: Store) -> None:
    with store.in_use(), pytest.raises(StoreError, match="in use by a run"):
        Store(store.folder).trim(days=0)
    assert store.trim(days=0) == (0, 0)


def _in(manifest: dict[str, Any], name: str, value: Any) -> str:
    return json.dumps({**manifest, name: value})


def _sized(manifest: dict[str, Any], size: Any) -> str:
    first, *others = manifest["files"].items()
    return _in(manifest, "files", {first[0]: {**first[1], "size": size}, **dict(others)})


DEEP = "[" * 100_000 + "]" * 100_000
DAMAGED: dict[str, Callable[[dict[str, Any]], str | bytes]] = {
    "seconds of 400 digits": lambda manifest: _in(manifest, "seconds", 10**400),
    "Infinity": lambda manifest: _in(manifest, "seconds", float("inf")),
    "true for seconds": lambda manifest: _in(manifest, "seconds", True),
    "a negative size": lambda manifest: _sized(manifest, -1),
    "a size of 2^80": lambda manifest: _sized(manifest, 2**80),
    "a digest that is none": lambda manifest: _in(manifest, "files", {"a": {"sha256": "x" * 64, "size": 1}}),
    "a file elsewhere": lambda manifest: _in(manifest, "files", {"../a": {"sha256": "a" * 64, "size": 1}}),
    "half a character": lambda manifest: _in(manifest, "recipe", "\ud800"),
    "deep ingredients": lambda manifest: _in(manifest, "ingredients", "X").replace('"X"', '{"a":' + DEEP + "}"),
    "other ingredients": lambda manifest: _in(manifest, "ingredients", {"stage": "emit", "parameters": {}}),
    "a list": lambda manifest: json.dumps([manifest]),
    "no UTF-8": lambda manifest: b"\xff" + json.dumps(manifest).encode(),
    "half of it": lambda manifest: json.dumps(manifest)[:-20],
    "too large": lambda manifest: json.dumps(manifest) + " " * MOST_BYTES,
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_manifest_is_seen_by_runs_and_by_verify(damage: str, store: Store) -> None:
    """And what such a run makes takes its place, without a field that nobody wrote."""
    artifact = make(store)
    path = artifact.folder / "manifest.json"
    path.write_bytes(text if isinstance(text := DAMAGED[damage](dict(artifact.manifest)), bytes) else text.encode())
    assert store.find(artifact.key) is None
    (entry,) = inventory(store)
    assert [*damages(store, entry)] == ["its manifest.json cannot be read or was altered"]
    assert make(store).seconds < 1e3
    assert [*damages(store, inventory(store)[0])] == []


@pytest.mark.parametrize("name", ["manifest.json", "log.txt", "files/run.sh"])
def test_what_is_no_file_is_not_waited_for(name: str, store: Store) -> None:
    """A pipe in the place of a file, which has no end."""
    artifact = make(store)
    (artifact.folder / name).unlink()
    os.mkfifo(artifact.folder / name)
    stored_artifact = store.find(artifact.key)
    assert (stored_artifact is None) == (name != "log.txt")
    assert stored_artifact is None or stored_artifact.log == ""
    (entry,) = inventory(store)
    assert [text for text in damages(store, entry) if Path(name).name in text and "cannot be read" in text]
