"""Copies of the kernels' C into the emitted folder: those that a layer uses, and the headers they include.

`stages/kernels/rvp/gemm.c` becomes `kernels/rvp/gemm.c`. An include is looked up in the file's own folder, then in
`stages/kernels/include`; the copy's include line gets the relative path, so that no -I is needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from stages.base import StageError
from stages.installation import WHOLE

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"
_INCLUDE = re.compile(r'^(\s*#\s*include\s+)"([^"]+)"', re.MULTILINE)

ROOT = Path(__file__).resolve().parents[1] / "kernels"


def copy_kernels(files: Iterable[str], out: Path, root: Path = ROOT) -> list[str]:
    """Writes `files` (relative to `root`) and what they include under `out`; returns all paths in `out`, sorted.

    Raises StageError for a file that is not there: the descriptor is wrong, or the project is not whole.
    """
    pending, done = list(dict.fromkeys(files)), set()
    while pending:
        name = pending.pop()
        if name in done:
            continue
        done.add(name)
        path = root / name
        if not path.is_file():
            raise StageError(f"kernel file {name} is not in stages/{root.name}", hint=WHOLE)
        text, found = _relocate(path.read_text(), name, root)
        pending += found
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(LICENCE + text)
    return sorted(done)


def _relocate(text: str, name: str, root: Path) -> tuple[str, list[str]]:
    """The text with include lines that work from the copy's place, and the files they name."""
    here = Path(name).parent
    found: list[str] = []

    def rewrite(match: re.Match[str]) -> str:
        for folder in (here, Path("include")):
            candidate = Path(os.path.normpath(folder / match[2]))
            if (root / candidate).is_file():
                found.append(candidate.as_posix())
                return f'{match[1]}"{os.path.relpath(candidate, here)}"'
        raise StageError(f"kernel file {name} includes {match[2]}, which is not in stages/{root.name}", hint=WHOLE)

    return _INCLUDE.sub(rewrite, text), found
