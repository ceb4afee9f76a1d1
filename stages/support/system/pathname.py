"""File names in recipes: validation, location, and description of missing files."""

import os
import re
import stat
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from stages.support.system.installation import INSTALLATION

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# A folder that differs between machines: ${NAME}/net.tflite, ${NAME:-../models}/net.tflite
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}(?P<rest>/.*|$)", re.DOTALL)
# PATH_MAX of Linux, in bytes.
_LONGEST = 4095


def _possible(text: str) -> str:
    """Return the text. Raises ValueError if it cannot be a file name."""
    if not text.strip():
        raise ValueError("should be the name of a file, is empty")
    if "\0" in text:
        raise ValueError("should be the name of a file, has a NUL character in it")
    if len(os.fsencode(text)) > _LONGEST:
        raise ValueError(f"has {len(text):,} characters, more than a file name can have")
    if text.startswith("${") and not _VARIABLE.match(text):
        raise ValueError("should begin as ${NAME}/ or ${NAME:-folder}/, with the name of an environment variable")
    if text.startswith("~"):
        try:
            Path(text).expanduser()
        except RuntimeError:
            raise ValueError(f"there is no user {text.split('/')[0][1:]!r} with a home folder") from None
    return text


Pathname = Annotated[str, AfterValidator(_possible)]


def located(name: str, root: Path) -> Path:
    """Return the file of a `Pathname`.

    It is absolute, or relative to `root`, to a home folder (`~`) or to a variable. `${NAME}/…` is in the folder that
    the environment variable names; `${NAME:-folder}/…` has a default. If no such file exists below `root`, a file of
    the installation is used, as built-in recipes name them.
    """
    name = _expanded(name)
    path = root / Path(name).expanduser()
    built_in = INSTALLATION / name
    return built_in if not os.path.exists(path) and os.path.exists(built_in) else path  # noqa: PTH110 - never raises


def _expanded(name: str) -> str:
    """Return the name with its variable replaced; unchanged without a value and a default."""
    match = _VARIABLE.match(name)
    folder = (os.environ.get(match["name"]) or match["default"]) if match else None
    return f"{folder}{match['rest']}" if match and folder else name


def variable_hint(name: str) -> str:
    """Return a hint about the variable in the name of a missing file; '' without a variable."""
    match = _VARIABLE.match(name)
    if match is None:
        return ""
    value = os.environ.get(match["name"])
    return f"the environment variable {match['name']} names the folder; it is {value or 'not set'}"


def describe_path(path: Path) -> str:
    """Return "a folder", "a pipe", "a link that leads nowhere"; '' for a file or nothing."""
    try:
        return _KINDS.get(stat.S_IFMT(path.stat().st_mode), "")
    except (OSError, ValueError):
        return "a link that leads nowhere" if _is_link(path) else ""


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except (OSError, ValueError):
        return False
