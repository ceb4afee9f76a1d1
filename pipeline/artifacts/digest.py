"""sha256 of files and of values.

A file's digest is remembered with its mtime, ctime, size and inode, so that a run in which nothing changed reads no
file. Touching a file changes its times: it is hashed again, has the same digest, and so runs nothing.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import threading
import time
from pathlib import Path
from typing import Any

from stages.system.caches import read_cache, write_cache
from stages.system.regular_file import open_regular

# A file changed twice within one tick of the kernel's clock keeps its times; so what is this young is not remembered.
_RACY_NS = 50_000_000
# How often a file is read that changes while it is read.
_ATTEMPTS = 10

# When a file's content and its entry were last changed, in ns, its bytes and its inode. Nobody can set the second time.
Identity = tuple[int, int, int, int]


def digest_of(value: Any) -> str:
    """sha256 of a JSON value, independent of the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def hash_file(path: Path) -> str:
    """sha256 of the bytes of a regular file. Raises OSError."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def identity_of(path: Path) -> Identity:
    """What tells a file that was changed, or replaced, from one that was not. Raises OSError."""
    return _identity(path.stat())


def _identity(info: os.stat_result) -> Identity:
    return info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino


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
        loaded = read_cache(path)
        if isinstance(loaded, dict):
            self._entries = loaded

    def digest(self, path: Path) -> str:
        """sha256 of a regular file's bytes; `path` is absolute. Raises OSError."""
        return self.look(path)[1]

    def look(self, path: Path, *, settle: bool = False) -> tuple[Identity, str]:
        """A file's identity and the sha256 of its bytes.

        With `settle` it has these bytes as long as it has this identity; that may take some hundredths of a second when
        it changed in this very moment. Raises OSError.
        """
        name = str(path)
        for _ in range(_ATTEMPTS):
            info = os.stat(name)  # noqa: PTH116 - a thousand times at each start
            if not stat.S_ISREG(info.st_mode):
                raise IsADirectoryError(f"{path} is not a file")
            identity = _identity(info)
            entry = self._entries.get(name)
            if entry is not None and tuple(entry[:4]) == identity:
                return identity, str(entry[4])
            # Before it is read: what is written while it is read may have the same times.
            young = time.time_ns() - info.st_ctime_ns < _RACY_NS
            if young and settle:
                time.sleep(_RACY_NS / 1e9)
            value = hash_file(path)
            if identity_of(path) == identity:
                if settle or not young:
                    with self._lock:
                        self._entries[name] = [*identity, value]
                        self._changed = True
                return identity, value
        raise OSError(errno.EBUSY, "it is being written", name)

    def save(self) -> None:
        """Write the cache if it changed, without the files that are gone. A cache that cannot be written is dropped."""
        with self._lock:
            if self._changed:
                self._entries = {name: entry for name, entry in self._entries.items() if _is_there(name)}
                write_cache(self._path, self._entries)
                self._changed = False

    def forget(self, path: Path) -> None:
        """Read a file anew when its digest is next asked for."""
        with self._lock:
            self._changed |= self._entries.pop(str(path), None) is not None
