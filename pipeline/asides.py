"""Files that are written aside and then renamed: their names, and removing those that killed runs left.

`.report.json.1234.5678` is the file that thread 5678 of process 1234 wrote when it was killed; `.src.1234` a folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
import time
from pathlib import Path

_ASIDE = re.compile(r"^\..+\.(\d+)\.\d+(?:\.old)?$")
# Seconds after which the name of a process says nothing: its number may be another's by now, or one of another machine.
_LONG_AGO = 86400.0


def aside(path: Path) -> Path:
    """The name under which this thread writes what becomes `path`."""
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")


def clear_asides(folder: Path) -> None:
    """Remove from a folder what processes that are no more were writing aside. What cannot be removed stays."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            found = _ASIDE.match(entry.name)
            if found and not _may_be_written(entry, int(found[1])):
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
