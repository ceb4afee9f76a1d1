"""Installation on demand: groups of Python packages, and Debian packages of tools.

In a clone, `bootstrap` installs them. Groups are optional dependencies of pyproject.toml, in the versions of
constraints.txt. Elsewhere the user installs them with pip and apt-get.
"""

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
    """Return the command that installs a group."""
    return f"./bootstrap --with {group}" if _bootstrapped() else f"pip install 'firmline[{group}]'"


def install_group(group: str) -> bool:
    """Install a group with the clone's `bootstrap`; False if the environment is not a clone's.

    Output goes to stderr. Raises ToolError if it fails.
    """
    if not _bootstrapped():
        return False
    if _bootstrap("--with", group):
        message = f"the Python packages of the group {group} could not be installed, see above"
        raise ToolError(message, hint=f"to try again: {install_command(group)}")
    importlib.invalidate_caches()
    return True


def install_debian(packages: Sequence[str]) -> bool:
    """Install Debian packages with `bootstrap`; False without permission or on failure."""
    allowed = shutil.which("apt-get") and (os.geteuid() == 0 or shutil.which("sudo"))
    return bool(allowed) and _bootstrapped() and not _bootstrap("--debian", ",".join(packages))


def _bootstrap(option: str, names: str) -> int:
    """Run bootstrap with an option and return its exit code. Output goes to stderr."""
    command = [str(INSTALLATION / "bootstrap"), option, names, "true"]
    with (Path(sys.prefix) / ".firmline-installing").open("w") as lock:
        flock(lock, LOCK_EX)  # processes of a bench may call it at the same time
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False).returncode


def locked_version(package: str) -> str:
    """Return the version of a package in constraints.txt; '' if nothing would be installed."""
    if not _bootstrapped():
        return ""
    text = (INSTALLATION / "constraints.txt").read_text(encoding="utf-8")
    match = re.search(rf"^{re.escape(package)}==(\S+)", text, re.MULTILINE)
    return match[1] if match else ""


def _bootstrapped() -> bool:
    """Return whether this process runs in the environment of a clone."""
    return is_clone() and Path(sys.prefix).resolve() == INSTALLATION / ".venv"
