"""Temporary folders with a lock. Later runs remove the folders of killed processes.

The process holds the lock of a file in its folder; the system releases it when the process ends. A folder is created
and locked under a temporary name first, so that no other process sees it unlocked.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

_PREFIX = "firmline-"
_NEW = f"{_PREFIX}new-"
_LOCK = ".firmline-lock"
# Seconds after which a folder with a temporary name is considered abandoned.
_LONG = 3600.0

# The locks of this process.
_locks: dict[Path, TextIO] = {}


def make_folder(purpose: str) -> Path:
    """Create a folder `firmline-<purpose>-…`; `remove_folder` removes it. Raises OSError."""
    unlocked = Path(tempfile.mkdtemp(prefix=_NEW))
    folder = unlocked.with_name(f"{_PREFIX}{purpose}-{unlocked.name.removeprefix(_NEW)}")
    lock = (unlocked / _LOCK).open("w", encoding="utf-8")
    fcntl.flock(lock, fcntl.LOCK_EX)
    unlocked.rename(folder)
    _locks[folder] = lock
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a folder of `make_folder`. Files written there later are removed by later runs."""
    shutil.rmtree(folder, ignore_errors=True)
    lock = _locks.pop(folder, None)
    if lock is not None:
        lock.close()


@contextlib.contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Yield a temporary folder that is removed at the end of the block."""
    folder = make_folder(purpose)
    try:
        yield folder
    finally:
        remove_folder(folder)


def clear_abandoned() -> None:
    """Remove this user's folders of `make_folder` whose processes have ended."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(tempfile.gettempdir())):
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _clear(entry)


def _clear(entry: os.DirEntry[str]) -> None:
    info = entry.stat(follow_symlinks=False)
    young = time.time() - info.st_mtime < _LONG
    if info.st_uid != os.getuid() or (entry.name.startswith(_NEW) and young):
        return
    # Other folders do not have this file: OSError.
    with Path(entry.path, _LOCK).open("r+", encoding="utf-8") as lock:
        # OSError if a running process holds the lock.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(entry.path, ignore_errors=True)
