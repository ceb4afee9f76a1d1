"""Atomic file writes: write under a temporary name, then rename.

`.report.json.1234.5678` is the temporary file or folder of process 1234, thread 5678, for `report.json`.
If the process was killed, the next write of `report.json` removes it. Runs remove all stale ones from the store and the
build folder.
"""

import contextlib
import errno
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_TEMPORARY = re.compile(r"^\.(?P<name>.+)\.(?P<process>\d+)\.\d+(?:\.old)?$")
# Seconds after which the process number may belong to another process, or to another machine.
_LONG_AGO = 86400.0


def temporary_name(path: Path) -> Path:
    """Return the name under which this thread writes the future `path`."""
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the block succeeds. Raises OSError.

    The parent folder is created if it is missing. Stale temporary files of `path` are removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_stale_files(path.parent, path.name)
    temporary = temporary_name(path)
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Raise the OSError that `write_atomically` would raise, as far as it can be predicted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    temporary = temporary_name(path)
    temporary.touch()
    temporary.unlink()


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file such that readers see the old or the new content, never a part.

    Raises OSError.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def remove_stale_files(folder: Path, name: str = "") -> None:
    """Remove temporary files of ended processes from a folder.

    name  only those for this file; '': all

    Files that cannot be removed stay.
    """
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            match = _TEMPORARY.match(entry.name)
            if match is None or (name and match["name"] != name) or _may_be_written(entry, int(match["process"])):
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                Path(entry.path).unlink(missing_ok=True)


def _may_be_written(entry: os.DirEntry[str], process: int) -> bool:
    if time.time() - entry.stat(follow_symlinks=False).st_mtime > _LONG_AGO:
        return False
    if process == os.getpid():
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
