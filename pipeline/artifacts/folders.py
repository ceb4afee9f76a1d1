"""Folders of the store: made, removed and brought to the disk, whatever lies in their place."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def make_folder(path: Path) -> None:
    """Make a folder, in place of what is no folder. Raises OSError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        path.unlink()
        path.mkdir()


def remove(path: Path) -> None:
    """Remove a folder or file, whatever it may be by now."""

    def again(_: Callable[..., Any], name: str, __: Any) -> None:
        # In a folder that is closed nothing can be removed.
        with contextlib.suppress(OSError):
            Path(name).parent.chmod(0o700)
            if not Path(name).is_symlink():
                Path(name).chmod(0o700)
            Path(name).rmdir() if Path(name).is_dir() else Path(name).unlink()

    if path.is_dir() and not path.is_symlink():
        # A compiler that outlived its run may still write there; what stays is removed by a later run.
        shutil.rmtree(path, onerror=again)
        if path.exists():
            shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def fsync(path: Path) -> None:
    """Have a file, or the entries of a folder, written to the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
