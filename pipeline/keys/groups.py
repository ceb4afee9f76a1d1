"""Python packages that only some recipes need: groups of pyproject.toml's optional dependencies.

In a clone `bootstrap` installs a group, by its lock file, into the environment that it made; elsewhere pip does.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from fcntl import LOCK_EX, flock
from pathlib import Path

from pipeline.errors import ToolError
from stages.system.installation import INSTALLATION, is_clone


def how_to_install(group: str) -> str:
    """The command that installs a group."""
    return f"./bootstrap --with {group}" if _bootstrapped() else f"pip install 'firmline[{group}]'"


def install(group: str) -> bool:
    """Install a group with the clone's `bootstrap`; False where that is not what made this environment.

    What it does is on stderr. Raises ToolError when it fails.
    """
    if not _bootstrapped():
        return False
    command = [str(INSTALLATION / "bootstrap"), "--with", group, "true"]
    with (Path(sys.prefix) / ".firmline-installing").open("w") as lock:
        flock(lock, LOCK_EX)  # processes of one bench come to it at the same time
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        message = f"the Python packages of the group {group} cannot be installed, see above"
        raise ToolError(message, hint=f"install them when there is a way: {how_to_install(group)}")
    importlib.invalidate_caches()
    return True


def promised(group: str, package: str) -> str:
    """The version of a package that `install` would install, by the group's lock file; '' where it installs nothing."""
    if not _bootstrapped():
        return ""
    lock = INSTALLATION / f"requirements-{group}-lock.txt"
    found = re.search(rf"^{re.escape(package)}==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


def _bootstrapped() -> bool:
    """Whether this process runs in the environment of a clone."""
    return is_clone() and Path(sys.prefix).resolve() == INSTALLATION / ".venv"
