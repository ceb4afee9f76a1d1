"""Copies of the kernels' C into the emitted folder: those that a layer uses, and the headers they include.

`rvp/gemm.c`, a file of the kernel folder rvp, becomes `kernels/rvp/gemm.c`. An include is looked up in the file's own
folder, then in those that the kernel folder's record names, then among the headers that all folders share; the copy's
include line gets the relative path, so that no -I is needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from stages.backends.kernels.folder import INCLUDE, KernelFolder
from stages.base import StageError
from stages.support.options.names import why_not
from stages.support.system.below import below
from stages.support.system.installation import WHOLE

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"
_INCLUDE = re.compile(r'^(\s*#\s*include\s+)"([^"]+)"', re.MULTILINE)
_SHARED = INCLUDE.name
_BACKENDS = INCLUDE.parents[1]


def copy_kernels(files: Iterable[str], out: Path, folders: Mapping[str, KernelFolder]) -> list[str]:
    """Writes `files` (folder/file) and what they include under `out`; returns all paths in `out`, sorted.

    Raises StageError for a file that is not there: the descriptor is wrong, or the installation is not whole.
    """
    pending, done = list(dict.fromkeys(files)), set()
    while pending:
        name = pending.pop()
        if name in done:
            continue
        done.add(name)
        for part in name.split("/"):
            if wrong := why_not(part):
                raise StageError(f"kernel file {wrong}")
        path = _place(name, folders)
        if path is None:
            raise StageError(
                f"kernel file {name} is not there",
                hint=_remedy(name, folders, "what names it in `sources` or `headers`"),
            )
        text, found = _relocate(path.read_text(), name, folders)
        pending += found
        try:
            place = below(out, name)
        except OSError as error:
            raise StageError(f"kernel file {name} cannot be written: {error.strerror}") from None
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(LICENCE + text)
    return sorted(done)


def _remedy(name: str, folders: Mapping[str, KernelFolder], where: str) -> str:
    """What to do about a file that is missing: one of Firmline's, or a plug-in's, where `where` may be wrong."""
    folder = folders.get(name.partition("/")[0])
    if folder is None or folder.path.is_relative_to(_BACKENDS):
        return WHOLE
    return f"write it, or mend {where} in {folder.path.parent.name}/{folder.name}"


def _place(name: str, folders: Mapping[str, KernelFolder]) -> Path | None:
    """Where the file `folder/file` lies, None where there is none."""
    first, _, rest = name.partition("/")
    root = INCLUDE if first == _SHARED else folders[first].path if first in folders else None
    return root / rest if root is not None and (root / rest).is_file() else None


def _relocate(text: str, name: str, folders: Mapping[str, KernelFolder]) -> tuple[str, list[str]]:
    """The text with include lines that work from the copy's place, and the files they name."""
    here = Path(name).parent
    found: list[str] = []

    def rewrite(match: re.Match[str]) -> str:
        for folder in _searched(here, folders):
            candidate = os.path.normpath(folder / match[2])
            if _place(candidate, folders) is not None:
                found.append(candidate)
                return f'{match[1]}"{os.path.relpath(candidate, here)}"'
        message = f"kernel file {name} includes {match[2]}, which is in none of the kernel folders"
        raise StageError(message, hint=_remedy(name, folders, "`include` of its FOLDER"))

    return _INCLUDE.sub(rewrite, text), found


def _searched(here: Path, folders: Mapping[str, KernelFolder]) -> Iterator[Path]:
    yield here
    first = here.parts[0]
    if first in folders:
        yield from (Path(first, more) for more in folders[first].include)
    yield Path(_SHARED)
