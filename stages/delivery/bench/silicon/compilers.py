"""The compiler that a published program's row of silicon.yaml names, if installed.

Rows of Arm's compiler take Clang, from which it derives. Rows of a GCC take one with the same major version if the PATH
has it under its versioned name (`arm-none-eabi-gcc-14.2.1`); else the target's own.
"""

import os
import re
import shutil
from functools import cache
from pathlib import Path

from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.support.system.programs import run_tool

# Version 14 is that of Arm Compiler 6.18, which most rows used.
_CLANG = ("clang-14", "clang")
_ARM = re.compile(r"\barmclang\b|\bMDK\b")
_GCC = re.compile(r"(?i)\bgcc (\d+)\.")


def uses_clang(compiler: str) -> bool:
    """Whether a row's `compiler` is Arm's."""
    return _ARM.search(compiler) is not None


def with_compiler(target: Target, compiler: str) -> Target:
    """Return the target with the compiler of a row.

    Raises StageError if it needs Clang and there is none.
    """
    if uses_clang(compiler):
        return _with_clang(target)
    version = _GCC.search(compiler)
    command = _versioned(target.compiler.command, version[1], os.environ.get("PATH", "")) if version else ""
    if not command:
        return target
    # Arm's GCC 14 makes tail-predicated loops; GCC 14 itself does not.
    flags = (*target.compiler.flags, *(("-mno-dlstp",) if _has_dlstp(command) else ()))
    return target.model_copy(
        update={"compiler": target.compiler.model_copy(update={"command": command, "flags": flags})}
    )


@cache
def _has_dlstp(command: str) -> bool:
    return " -mdlstp " in run_tool([command, "--help=target"]).stdout


@cache
def _versioned(command: str, major: str, path: str) -> str:
    """Return the latest `command-MAJOR…` of a PATH, or ''."""
    name = re.compile(rf"{re.escape(command)}-{major}(\.[\d.]+)?")
    places = [place for folder in path.split(os.pathsep) if (place := Path(folder)).is_dir()]
    there = {each.name: str(each) for place in places for each in place.iterdir() if name.fullmatch(each.name)}
    return there[max(there, key=lambda each: [int(part) for part in re.findall(r"\d+", each)])] if there else ""


def _with_clang(target: Target) -> Target:
    """Return the target with Clang as its compiler, and the headers of its GCC's C library."""
    command = next(filter(shutil.which, _CLANG), "")
    if not command:
        raise StageError("clang is not installed; rows of Arm's compiler need it", hint="apt-get install clang-14")
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
