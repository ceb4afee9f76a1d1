"""Opens files without waiting for a pipe or a device that lies in their place."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path


def open_regular(path: Path) -> BufferedReader:
    """A file to read, which is a regular one. Raises OSError, also for what is none."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no file", str(path))
    return os.fdopen(handle, "rb")


def read_regular(path: Path, most: int) -> bytes:
    """The bytes of a regular file of at most `most` bytes. Raises OSError, also for a larger one."""
    with open_regular(path) as stream:
        content = stream.read(most + 1) if os.fstat(stream.fileno()).st_size <= most else None
    if content is None or len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return content
