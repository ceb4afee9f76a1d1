"""Check that paths with names from outside stay below a folder."""

import errno
import os
from pathlib import Path


class OutsideError(OSError):
    """A path that leads out of its folder; `strerror` names the real path."""


def path_below(root: Path, *parts: str | Path) -> Path:
    """Return the path root/parts, not resolved. It need not exist; `root` may itself be a link.

    Raises OutsideError where `..`, an absolute part or a link leads out of `root`, or to `root` itself.
    """
    path = root.joinpath(*parts)
    top, real = os.path.realpath(root), os.path.realpath(path)
    if real == top or os.path.commonpath([top, real]) != top:
        raise OutsideError(errno.EPERM, f"it leads to {real}, outside of {root}", str(path))
    return path
