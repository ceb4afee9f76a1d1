"""Which kernel folders there are and where their code lies; nothing is imported of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_CODE = (".py", ".c", ".h", ".S")
# A file of another folder, as C includes it and as kernels name their sources: "../neon/windows.c"; or all of its
# headers, as records name them: "../generic".
_BESIDE = re.compile(rb'"\.\./(\w+)["/]')
_SHARED = ("include", "tir")  # folders of stages/kernels that hold no kernels


def folder_names() -> list[str]:
    """Names of the kernel folders there are, sorted."""
    here = Path(__file__).parent
    return sorted(p.parent.name for p in here.glob("*/__init__.py") if p.parent.name not in _SHARED)


def code_patterns(names: Iterable[str]) -> tuple[str, ...]:
    """Globs, relative to Firmline's folder, of all code of the folders `names` and of those whose files they name."""
    waiting, found = list(names), []
    while waiting:
        name = waiting.pop(0)
        if name in found or not (_HERE / name).is_dir():  # whoever loads it says that there is none
            continue
        found.append(name)
        for path in sorted((_HERE / name).iterdir()):
            if path.suffix in _CODE:
                waiting += (beside.decode() for beside in _BESIDE.findall(path.read_bytes()))
    folders = tuple(f"stages/kernels/{name}/**/*.{kind}" for name in found for kind in ("py", "[chS]"))
    return ("stages/kernels/include/*.h", *folders)
