"""Building something into a cache once, also when several processes want it at the same time."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def built_once(library: Path, build: Callable[[Path], None]) -> Path:
    """`library`, built by `build(library)` when it is not there. Its folder's parent has the lock.

    `build` has to make the library appear whole: written aside, then renamed.
    """
    if not library.exists():
        with _lock(library.parent.parent):
            if not library.exists():  # another process may have built it meanwhile
                build(library)
    return library


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Only one process at a time builds; the lock goes with the process that holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
