"""Clang as a target's compiler, for programs that were compiled with Arm's compiler, which derives from it."""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from typing import TYPE_CHECKING

from stages.base import StageError
from stages.support.system.programs import run_tool

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target

# Version 14 is that of Arm Compiler 6.18, which most rows used.
_NAMES = ("clang-14", "clang")
_ARM = re.compile(r"\barmclang\b|\bMDK\b")


def uses_clang(compiler: str) -> bool:
    """Whether a row's `compiler` is Arm's."""
    return _ARM.search(compiler) is not None


def with_clang(target: Target) -> Target:
    """Return the target with Clang as its compiler, and the headers of its GCC's C library. Raises StageError."""
    command = next(filter(shutil.which, _NAMES), "")
    if not command:
        raise StageError("no clang, from which Arm's compiler derives", hint="apt-get install clang-14")
    gcc = target.compiler.command
    # Inline assembly of TinyMaix writes r7, which else is the frame pointer.
    own = ("-fomit-frame-pointer", f"--target={gcc.removesuffix('-gcc')}", "-isystem", _headers(gcc))
    flags = (*own, *target.compiler.flags)
    compiler = target.compiler.model_copy(update={"command": command, "flags": flags, "packages": ()})
    return target.model_copy(update={"compiler": compiler})


@cache
def _headers(gcc: str) -> str:
    """Return the folder of the C library's headers: the last that GCC searches."""
    lines = run_tool([gcc, "-E", "-v", "-x", "c", os.devnull]).stderr.splitlines()
    return [line.strip() for line in lines if line.startswith(" /")][-1]
