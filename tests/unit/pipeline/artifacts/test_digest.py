"""Digests are of bytes; what is remembered is only a shortcut."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from pipeline.artifacts import digest
from pipeline.artifacts.digest import DigestCache


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files whose bytes were read, in order."""
    read: list[Path] = []
    original = digest.hash_file

    def counting(path: Path) -> str:
        read.append(path)
        return original(path)

    monkeypatch.setattr(digest, "hash_file", counting)
    return read


def old(path: Path, text: str) -> Path:
    """A file that was written a while ago as far as its mtime says, and long enough ago as its ctime says."""
    path.write_text(text)
    os.utime(path, ns=(1, 1))
    time.sleep(0.06)
    return path


def test_unchanged_file_is_read_once(tmp_path: Path, hashed: list[Path]) -> None:
    path = old(tmp_path / "f", "x")
    cache = DigestCache(tmp_path / "cache.json")
    assert cache.digest(path) == cache.digest(path) == hashlib.sha256(b"x").hexdigest()
    cache.save()
    assert DigestCache(tmp_path / "cache.json").digest(path) == cache.digest(path)
    assert hashed == [path]


def test_changed_byte_with_size_and_mtime_kept_is_seen(tmp_path: Path) -> None:
    path = old(tmp_path / "f", "x")
    cache = DigestCache(tmp_path / "cache.json")
    before = cache.digest(path)
    path.write_text("y")
    os.utime(path, ns=(1, 1))
    assert cache.digest(path) != before


def test_young_file_is_not_remembered(tmp_path: Path, hashed: list[Path]) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    cache = DigestCache(tmp_path / "cache.json")
    cache.digest(path)
    cache.digest(path)
    assert hashed == [path, path]


def test_damaged_cache_is_ignored(tmp_path: Path) -> None:
    path = old(tmp_path / "f", "x")
    for damage in ("", "[]", "{"):
        (tmp_path / "cache.json").write_text(damage)
        assert DigestCache(tmp_path / "cache.json").digest(path) == hashlib.sha256(b"x").hexdigest()


def test_settling_waits_before_it_reads_what_is_young(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second change in the same tick of the clock keeps all times: after the wait there is none any more."""
    waits: list[float] = []
    path = tmp_path / "f"

    def wait(seconds: float) -> None:
        waits.append(seconds)
        path.write_text("y")

    monkeypatch.setattr(digest.time, "sleep", wait)
    monkeypatch.setattr(digest, "identity_of", lambda path: digest._identity(info))
    path.write_text("x")
    info = path.stat()
    monkeypatch.setattr(Path, "stat", lambda path, **_: info)
    cache = DigestCache(tmp_path / "cache.json")
    assert cache.digest(path) == hashlib.sha256(b"x").hexdigest()
    assert waits == []
    assert cache.look(path, stable=True)[1] == hashlib.sha256(b"y").hexdigest()
    assert waits == [digest._RACY_NS / 1e9]
