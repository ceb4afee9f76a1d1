"""The folder of Firmline: a clone of the repository, or the package that pip installed.

Both have the same folders. Build results for this machine go to a clone's `.firmline`, else to the user's cache.
Nothing is written into an installed package.
"""

import os
from pathlib import Path

INSTALLATION = Path(__file__).resolve().parents[3]


def is_clone(folder: Path = INSTALLATION) -> bool:
    """Whether a folder is a clone of the repository."""
    return (folder / "bootstrap").is_file() and (folder / "stages" / "support" / "system" / "installation.py").is_file()


# Hint for a missing file of Firmline.
REINSTALL_HINT = (
    "is the clone complete? run `git status`" if is_clone() else "install Firmline again: a file of it is missing"
)


def default_cache() -> Path:
    """Return the user's cache folder.

    FIRMLINE_CACHE, else firmline/ in XDG_CACHE_HOME or ~/.cache.
    """
    chosen = os.environ.get("FIRMLINE_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "firmline"


def build_cache(name: str) -> Path:
    """Return the folder for build results `name` of this machine."""
    return INSTALLATION / ".firmline" / name if is_clone() else default_cache() / name


def with_modules(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment with Firmline on PYTHONPATH."""
    path = os.pathsep.join(filter(None, (str(INSTALLATION), environment.get("PYTHONPATH"))))
    return {**environment, "PYTHONPATH": path}
