"""Files that are written aside and then renamed, so that nobody sees a part; those that killed processes left go.

`.report.json.1234.5678` is the file that thread 5678 of process 1234 wrote when it was killed, or the folder. Whoever
writes `report.json` again removes it; runs remove all such files of the store and of the build folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_ASIDE = re.compile(r"^\.(?P<name>.+)\.(?P<process>\d+)\.\d+(?:\.old)?$")
# Seconds after which the name of a process says nothing: its number may be another's by now, or one of another machine.
_LONG_AGO = 86400.0


def temporary_name(path: Path) -> Path:
    """The name under which this thread writes what becomes `path`."""
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """The name of a file to write, which replaces `path` when the block ends well. Raises OSError.

    The folder is made where there is none; what killed processes were writing for `path` is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_stale_files(path.parent, path.name)
    place = temporary_name(path)
    try:
        yield place
        place.replace(path)
    except BaseException:
        place.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Raises the OSError with which `write_atomically` would fail, as far as that can be known before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    place = temporary_name(path)
    place.touch()
    place.unlink()


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old content or the new one, never a part. Raises OSError."""
    with replacing(path) as place:
        place.write_bytes(content.encode() if isinstance(content, str) else content)


def remove_stale_files(folder: Path, name: str = "") -> None:
    """Remove from a folder what processes that are no more were writing aside, or only what was to become `name`.

    What cannot be removed stays.
    """
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            found = _ASIDE.match(entry.name)
            if found is None or (name and found["name"] != name) or _may_be_written(entry, int(found["process"])):
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
