"""Names of files in recipes: what can be one at all, which file it means, and what lies there when it is none."""

from __future__ import annotations

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
# A folder that lies elsewhere on each machine: ${NAME}/net.tflite, ${NAME:-../models}/net.tflite
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}(?P<rest>/.*|$)", re.DOTALL)
# PATH_MAX of Linux, in bytes.
_LONGEST = 4095


def _possible(text: str) -> str:
    """The text as it is. Raises ValueError when no file can be called so."""
    if not text.strip():
        raise ValueError("should be the name of a file, is empty")
    if "\0" in text:
        raise ValueError("no file's name has a NUL character in it")
    if len(os.fsencode(text)) > _LONGEST:
        raise ValueError(f"no file's name has {len(text):,} characters")
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
    """The file that a `Pathname` means: relative to `root`, absolute, in a home folder (`~`), or in one that an
    environment variable names (`${NAME}/…`; with `${NAME:-folder}/…` that folder where the variable is not set).

    One that is not below `root` may be Firmline's own, as a built-in recipe names it.
    """
    name = _expanded(name)
    path = root / Path(name).expanduser()
    built_in = INSTALLATION / name
    return built_in if not os.path.exists(path) and os.path.exists(built_in) else path  # noqa: PTH110 - never raises


def _expanded(name: str) -> str:
    """The name with the folder of its variable; as it stands where that is neither set nor has a default."""
    found = _VARIABLE.match(name)
    folder = (os.environ.get(found["name"]) or found["default"]) if found else None
    return f"{folder}{found['rest']}" if found and folder else name


def of_variable(name: str) -> str:
    """What one should know of the variable in a name whose file is not there; '' of a name without."""
    found = _VARIABLE.match(name)
    if found is None:
        return ""
    value = os.environ.get(found["name"])
    return f"the environment variable {found['name']} names the folder; it is {value or 'not set'}"


def what_lies_at(path: Path) -> str:
    """What is there in place of a file: "a folder", "a pipe", "a link that leads nowhere"; '' when nothing is."""
    try:
        return _KINDS.get(stat.S_IFMT(path.stat().st_mode), "")
    except (OSError, ValueError):
        return "a link that leads nowhere" if _is_link(path) else ""


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except (OSError, ValueError):
        return False
