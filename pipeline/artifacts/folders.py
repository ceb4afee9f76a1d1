"""Create, remove and fsync folders of the store."""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def make_folder(path: Path) -> None:
    """Create a folder; replaces a file at its path. Raises OSError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        path.unlink()
        path.mkdir()


def remove(path: Path) -> None:
    """Remove a folder or file of any kind."""

    def retry(_: Callable[..., Any], name: str, __: Any) -> None:
        # Entries of a read-only folder cannot be removed.
        with contextlib.suppress(OSError):
            Path(name).parent.chmod(0o700)
            if not Path(name).is_symlink():
                Path(name).chmod(0o700)
            Path(name).rmdir() if Path(name).is_dir() else Path(name).unlink()

    if path.is_dir() and not path.is_symlink():
        # A compiler that outlived its run may still write there; a later run removes the rest.
        shutil.rmtree(path, onerror=retry)
        if path.exists():
            shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def fsync(path: Path) -> None:
    """Write a file, or the entries of a folder, to the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
