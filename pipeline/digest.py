"""sha256 of files and of values.

A file's digest is remembered with its mtime, ctime, size and inode, so that a run in which nothing changed reads no
file. Touching a file changes its times: it is hashed again, has the same digest, and so runs nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import threading
import time
from pathlib import Path
from typing import Any

# A file changed twice within one tick of the kernel's clock keeps its times; so what is this young is not remembered.
_RACY_NS = 50_000_000


def digest_of(value: Any) -> str:
    """sha256 of a JSON value, independent of the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def hash_file(path: Path) -> str:
    """sha256 of a file's bytes. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old content or the new one, never a part. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def _is_there(path: str) -> bool:
    """Whether a file can be seen: in a project that was moved, one of before may lie where this user may not look."""
    try:
        Path(path).stat()
    except OSError:
        return False
    return True


class DigestCache:
    """Digests of files, remembered in one JSON file. Safe to use from threads; two processes may lose each other's
    entries, never mix them up."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._changed = False
        self._entries: dict[str, list[Any]] = {}
        # A missing or damaged cache costs time, nothing else.
        with contextlib.suppress(OSError, ValueError):
            loaded = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(loaded, dict):
                self._entries = loaded

    def digest(self, path: Path) -> str:
        """sha256 of a regular file's bytes; `path` is absolute. Raises OSError."""
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise IsADirectoryError(f"{path} is not a file")
        identity = [info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino]
        name = str(path)
        entry = self._entries.get(name)
        if entry is not None and entry[:4] == identity:
            return str(entry[4])
        value = hash_file(path)
        if time.time_ns() - max(info.st_mtime_ns, info.st_ctime_ns) > _RACY_NS:
            with self._lock:
                self._entries[name] = [*identity, value]
                self._changed = True
        return value

    def save(self) -> None:
        """Write the cache if it changed, without the files that are gone. A cache that cannot be written is dropped."""
        with self._lock:
            if self._changed:
                self._entries = {name: entry for name, entry in self._entries.items() if _is_there(name)}
                with contextlib.suppress(OSError):
                    write_whole(self._path, json.dumps(self._entries))
                self._changed = False
