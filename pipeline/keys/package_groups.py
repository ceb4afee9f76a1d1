"""What a run installs when it first needs it: groups of Python packages, and Debian packages of its tools.

In a clone `bootstrap` does it: groups are pyproject.toml's optional dependencies, in the versions of constraints.txt.
Elsewhere the user does, with pip and apt-get.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from fcntl import LOCK_EX, flock
from pathlib import Path

from pipeline.errors import ToolError
from stages.support.system.installation import INSTALLATION, is_clone


def install_command(group: str) -> str:
    """The command that installs a group."""
    return f"./bootstrap --with {group}" if _bootstrapped() else f"pip install 'firmline[{group}]'"


def install_group(group: str) -> bool:
    """Install a group with the clone's `bootstrap`; False where that is not what made this environment.

    What it does is on stderr. Raises ToolError when it fails.
    """
    if not _bootstrapped():
        return False
    if _bootstrap("--with", group):
        message = f"the Python packages of the group {group} cannot be installed, see above"
        raise ToolError(message, hint=f"install them when there is a way: {install_command(group)}")
    importlib.invalidate_caches()
    return True


def install_debian(packages: Sequence[str]) -> bool:
    """Install Debian packages with the clone's `bootstrap`; False where this process may not, or bootstrap fails."""
    allowed = shutil.which("apt-get") and (os.geteuid() == 0 or shutil.which("sudo"))
    return bool(allowed) and _bootstrapped() and not _bootstrap("--debian", ",".join(packages))


def _bootstrap(option: str, names: str) -> int:
    """The exit code of bootstrap with an option. It reports on stderr."""
    command = [str(INSTALLATION / "bootstrap"), option, names, "true"]
    with (Path(sys.prefix) / ".firmline-installing").open("w") as lock:
        flock(lock, LOCK_EX)  # processes of one bench come to it at the same time
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False).returncode


def locked_version(package: str) -> str:
    """The version of a package that `install` would install, by constraints.txt; '' where it installs nothing."""
    if not _bootstrapped():
        return ""
    text = (INSTALLATION / "constraints.txt").read_text(encoding="utf-8")
    found = re.search(rf"^{re.escape(package)}==(\S+)", text, re.MULTILINE)
    return found[1] if found else ""


def _bootstrapped() -> bool:
    """Whether this process runs in the environment of a clone."""
    return is_clone() and Path(sys.prefix).resolve() == INSTALLATION / ".venv"
