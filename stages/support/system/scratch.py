"""Temporary folders that tell whether their process lives, so that a later run removes those of killed ones.

A folder has a locked file while its process runs; the system drops the lock of a process that is killed. It is made and
locked under a name of its own first, so that nobody finds it without the lock.
"""

from __future__ import annotations

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
# Seconds after which a folder that is still being made was left by a killed process.
_LONG = 3600.0

# The locks of this process.
_locks: dict[Path, TextIO] = {}


def make_folder(purpose: str) -> Path:
    """A new folder `firmline-<purpose>-…` where temporary files are; `remove_folder` takes it away. Raises OSError."""
    made = Path(tempfile.mkdtemp(prefix=_NEW))
    folder = made.with_name(f"{_PREFIX}{purpose}-{made.name.removeprefix(_NEW)}")
    lock = (made / _LOCK).open("w", encoding="utf-8")
    fcntl.flock(lock, fcntl.LOCK_EX)
    made.rename(folder)
    _locks[folder] = lock
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a folder of `make_folder`; what a program that outlives it still writes there is left to later runs."""
    shutil.rmtree(folder, ignore_errors=True)
    lock = _locks.pop(folder, None)
    if lock is not None:
        lock.close()


@contextlib.contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """A folder for as long as this lasts, at the latest until a run after this process was killed."""
    folder = make_folder(purpose)
    try:
        yield folder
    finally:
        remove_folder(folder)


def clear_abandoned() -> None:
    """Remove this user's folders of `make_folder` whose processes are no more."""
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
    # A folder without the file is none of these.
    with Path(entry.path, _LOCK).open("r+", encoding="utf-8") as lock:
        # Raises OSError when a living process holds it.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(entry.path, ignore_errors=True)
