"""SHA-256 of files and values.

Digests are cached with a file's mtime, ctime, size and inode, so a run without changes reads no file. A touched file is
read again; its digest is the same, so nothing runs.
"""

import errno
import hashlib
import json
import os
import stat
import threading
import time
from pathlib import Path
from typing import Any

from stages.support.system.caches import read_cache, write_cache
from stages.support.system.regular_file import open_regular

# Digests of younger files are not cached: a second change within one tick of the kernel's clock keeps the times.
_RACY_NS = 50_000_000
# Attempts to read a file that changes meanwhile.
_ATTEMPTS = 10

# mtime and ctime in ns, size, inode. Nobody can set ctime.
Identity = tuple[int, int, int, int]


def digest_of(value: Any) -> str:
    """Return the SHA-256 of a JSON value, independent of the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a regular file. Raises OSError."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def identity_of(path: Path) -> Identity:
    """Return times, size and inode, which differ after any change. Raises OSError."""
    return _identity(path.stat())


def _identity(info: os.stat_result) -> Identity:
    return info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino


def _is_visible(path: str) -> bool:
    """Return whether a file exists and may be looked at; an entry may be of a moved project."""
    try:
        Path(path).stat()
    except OSError:
        return False
    return True


class DigestCache:
    """Digests of files, cached in a JSON file.

    Thread-safe. Two processes may lose each other's entries, but never mix them up.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._changed = False
        self._entries: dict[str, list[Any]] = {}
        loaded = read_cache(path)
        if isinstance(loaded, dict):
            self._entries = loaded

    def digest(self, path: Path) -> str:
        """Return the SHA-256 of a regular file; `path` is absolute. Raises OSError."""
        return self.look(path)[1]

    def look(self, path: Path, *, stable: bool = False) -> tuple[Identity, str]:
        """Return a file's identity and SHA-256. Raises OSError.

        With `stable`, any later change of the bytes also changes the identity. That may take some hundredths of a
        second for a file that has just changed.
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
            # Check before reading: a write during the read may keep the times.
            young = time.time_ns() - info.st_ctime_ns < _RACY_NS
            if young and stable:
                time.sleep(_RACY_NS / 1e9)
            value = hash_file(path)
            if identity_of(path) == identity:
                if stable or not young:
                    with self._lock:
                        self._entries[name] = [*identity, value]
                        self._changed = True
                return identity, value
        raise OSError(errno.EBUSY, "the file keeps changing", name)

    def save(self) -> None:
        """Write the cache if it changed, without missing files. Errors are ignored."""
        with self._lock:
            if self._changed:
                self._entries = {name: entry for name, entry in self._entries.items() if _is_visible(name)}
                write_cache(self._path, self._entries)
                self._changed = False

    def forget(self, path: Path) -> None:
        """Read a file again on the next access."""
        with self._lock:
            self._changed |= self._entries.pop(str(path), None) is not None
