"""Whose a folder is: code and settings of a folder that another user owns are not loaded, as git does."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable
from pathlib import Path

#: Folders whose owner does not matter, absolute, separated by `:`; `DIR/*` is all below DIR, `*` is every folder.
VARIABLE = "FIRMLINE_SAFE_DIRECTORY"


def foreign(root: Path, loaded: Iterable[str]) -> tuple[Path, str] | None:
    """Return what of a folder belongs to another user, and to whom; None where all is this user's, or named as safe.

    loaded  names in the folder that are read as code or settings, links not followed: in a folder that all may write,
            such as /tmp, they may be somebody else's. Where none is there, nothing is looked at.

    Who became root by sudo may use what is the user's before.
    """
    there = [path for path in (root / name for name in loaded) if os.path.lexists(path)]
    if not there or _is_named(root):
        return None
    own = {os.geteuid()}
    before = os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and before.isascii() and before.isdigit():
        own.add(int(before))
    # A link in a folder of this user's is this user's choice.
    owners = [(root, root.stat().st_uid), *((path, path.lstat().st_uid) for path in there)]
    return next(((path, user_name(uid)) for path, uid in owners if uid not in own), None)


def user_name(uid: int) -> str:
    """Return `ann (uid 1001)`, or `uid 1001` where it has no name."""
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _is_named(root: Path) -> bool:
    real = os.path.realpath(root)
    for name in os.environ.get(VARIABLE, "").split(os.pathsep):
        if name == "*":
            return True
        if not name.startswith("/"):
            continue
        folder = os.path.realpath(name.removesuffix("*"))
        if real == folder or (name.endswith("/*") and os.path.commonpath([real, folder]) == folder):
            return True
    return False
