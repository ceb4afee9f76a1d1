"""Copy the C of used kernels, and the headers they include, into the emitted folder.

`rvp/gemm.c` of the kernel folder rvp becomes `kernels/rvp/gemm.c`. An include is searched in the file's folder, then
in the `include` folders of the kernel folder, then in the shared headers. The copied include line has a relative path,
so no -I is needed.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from stages.backends.kernels.folder import INCLUDE, KernelFolder
from stages.base import StageError
from stages.support.options.names import invalid_name
from stages.support.system.installation import REINSTALL_HINT
from stages.support.system.path_below import path_below

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"
_INCLUDE = re.compile(r'^(\s*#\s*include\s+)"([^"]+)"', re.MULTILINE)
_SHARED = INCLUDE.name
_BACKENDS = INCLUDE.parents[1]


def copy_kernels(files: Iterable[str], out: Path, folders: Mapping[str, KernelFolder]) -> list[str]:
    """Write `files` (folder/file) and their includes below `out`; return sorted paths there.

    Raises StageError if a file is missing: the descriptor is wrong, or the installation is incomplete.
    """
    pending, copied = list(dict.fromkeys(files)), set()
    while pending:
        name = pending.pop()
        if name in copied:
            continue
        copied.add(name)
        for component in name.split("/"):
            if wrong := invalid_name(component):
                raise StageError(f"kernel file {wrong}")
        source = _text(name, folders)
        if source is None:
            raise StageError(
                f"kernel file {name} does not exist", hint=_remedy(name, folders, "`sources` or `headers`")
            )
        text, includes = _relocate(source, name, folders)
        pending += includes
        try:
            place = path_below(out, name)
        except OSError as error:
            raise StageError(f"kernel file {name} cannot be written: {error.strerror}") from None
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(LICENCE + text)
    return sorted(copied)


def _remedy(name: str, folders: Mapping[str, KernelFolder], field: str) -> str:
    """Return the hint for a missing file: Firmline's, or a plug-in's with a wrong `field`."""
    folder = folders.get(name.partition("/")[0])
    if folder is None or folder.path.is_relative_to(_BACKENDS):
        return REINSTALL_HINT
    return f"create it, or correct {field} in {folder.path.parent.name}/{folder.name}"


def _place(name: str, folders: Mapping[str, KernelFolder]) -> Path | None:
    """Return the path of the file `folder/file`, or None."""
    folder, _, file = name.partition("/")
    root = INCLUDE if folder == _SHARED else folders[folder].path if folder in folders else None
    return root / file if root is not None and (root / file).is_file() else None


def _text(name: str, folders: Mapping[str, KernelFolder]) -> str | None:
    """Return the text of `folder/file`: of a file, or generated; None if it is neither."""
    if (path := _place(name, folders)) is not None:
        return path.read_text()
    folder, _, file = name.partition("/")
    record = folders.get(folder)
    return record.generate(file) if record is not None and record.generate is not None else None


def _relocate(text: str, name: str, folders: Mapping[str, KernelFolder]) -> tuple[str, list[str]]:
    """Rewrite the include lines for the copy; return the text and the included files."""
    parent = Path(name).parent
    includes: list[str] = []

    def rewrite(match: re.Match[str]) -> str:
        for folder in _searched(parent, folders):
            candidate = os.path.normpath(folder / match[2])
            if _text(candidate, folders) is not None:
                includes.append(candidate)
                return f'{match[1]}"{os.path.relpath(candidate, parent)}"'
        message = f"kernel file {name} includes {match[2]}, which is in none of the kernel folders"
        raise StageError(message, hint=_remedy(name, folders, "`include` of its FOLDER"))

    return _INCLUDE.sub(rewrite, text), includes


def _searched(parent: Path, folders: Mapping[str, KernelFolder]) -> Iterator[Path]:
    yield parent
    folder = parent.parts[0]
    if folder in folders:
        yield from (Path(folder, subfolder) for subfolder in folders[folder].include)
    yield Path(_SHARED)
