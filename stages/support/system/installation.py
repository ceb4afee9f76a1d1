"""Where Firmline itself is: a clone of its repository, or the package that pip installed, of which nothing is written.

Both have the same folders. What is built for this machine goes into a clone's `.firmline`, else into the user's cache.
"""

from __future__ import annotations

import os
from pathlib import Path

INSTALLATION = Path(__file__).resolve().parents[3]


def is_clone(folder: Path = INSTALLATION) -> bool:
    """Whether a folder is a clone of the repository."""
    return (folder / "bootstrap").is_file() and (folder / "stages" / "support" / "system" / "installation.py").is_file()


# What to do where a file of Firmline's own is not there.
WHOLE = "is the project whole? `git status` tells" if is_clone() else "install Firmline again: a file of it is gone"


def default_cache() -> Path:
    """The user's cache folder: FIRMLINE_CACHE, else firmline/ where XDG_CACHE_HOME says."""
    chosen = os.environ.get("FIRMLINE_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "firmline"


def build_cache(name: str) -> Path:
    """Where what is compiled for this machine is kept, by the name of what it is for."""
    return INSTALLATION / ".firmline" / name if is_clone() else default_cache() / name


def with_modules(environment: dict[str, str]) -> dict[str, str]:
    """An environment in which another Python finds the modules of the stages."""
    path = os.pathsep.join(filter(None, (str(INSTALLATION), environment.get("PYTHONPATH"))))
    return {**environment, "PYTHONPATH": path}
