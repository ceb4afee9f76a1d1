"""Ownership of folders: like Git, do not load code and settings from others' folders."""

import os
import pwd
from collections.abc import Iterable
from pathlib import Path

#: Absolute folders, separated by `:`, that are trusted for any owner. `DIR/*`: all below DIR; `*`: all folders.
VARIABLE = "FIRMLINE_SAFE_DIRECTORY"


def foreign_owner(root: Path, loaded: Iterable[str]) -> tuple[Path, str] | None:
    """Return the first path that belongs to another user, and that user; None if there is none.

    loaded  names in `root` that are read as code or settings. Links are not followed. In a shared folder such as /tmp
            they may belong to another user. If none exists, nothing is checked.

    Folders in FIRMLINE_SAFE_DIRECTORY are trusted. Under sudo, files of the calling user are trusted as well.
    """
    existing = [path for path in (root / name for name in loaded) if os.path.lexists(path)]
    if not existing or _is_named(root):
        return None
    trusted = {os.geteuid()}
    sudo_user = os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and sudo_user.isascii() and sudo_user.isdigit():
        trusted.add(int(sudo_user))
    # A link in this user's folder is this user's choice.
    owners = [(root, root.stat().st_uid), *((path, path.lstat().st_uid) for path in existing)]
    return next(((path, user_name(uid)) for path, uid in owners if uid not in trusted), None)


def user_name(uid: int) -> str:
    """Return `ann (uid 1001)`, or `uid 1001` for a user without a name."""
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
