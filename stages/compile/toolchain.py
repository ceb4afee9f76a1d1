"""Calls of the C compiler and the linker, with errors a user can act on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stages.base import StageError

if TYPE_CHECKING:
    from stages.targets.runtime import Runtime
    from stages.targets.spec import Target

WARNINGS = ("-Wall", "-Wextra", "-Werror")
#: Each function and object in a section of its own, so that the linker drops what nothing calls.
SECTIONS = ("-ffunction-sections", "-fdata-sections")
# What GCC and ld print where only the C library's package is missing: picolibc, newlib and the GNU C library.
_NO_C_LIBRARY = re.compile(
    r"cannot read spec file 'picolibc\.specs'|fatal error: (?:stdint|stddef|string|stdlib|stdio|math|fcntl)\.h: No such"
    r"|cannot find (?:-lc\b|crt1\.o)"
)
_JOBS = 2
_ERROR_LINES = 4


@dataclass(frozen=True)
class Source:
    """A C or assembly file and the flags that only it needs."""

    path: Path
    flags: tuple[str, ...] = ()


class CommandFailed(StageError):
    """A compiler or linker said no; `output` is all it printed."""

    def __init__(self, message: str, output: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.output = output


def run_command(
    arguments: Sequence[str],
    what: str,
    log: Callable[[str], None] = lambda line: None,
    cwd: Path | None = None,
    packages: Sequence[str] = (),
) -> str:
    """Standard output of a tool run in `cwd`. Raises CommandFailed with its first errors, StageError without it.

    `packages` are the compiler's and its C library's, for the hint where the library is missing.
    """
    log(" ".join(arguments))
    environment = {**os.environ, "LC_ALL": "C"}  # messages in English and ASCII, whoever runs it
    try:
        finished = subprocess.run(
            arguments, cwd=cwd, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError:
        raise StageError(f"{arguments[0]} is not installed or not on PATH") from None
    if finished.stderr:
        log(finished.stderr.rstrip())
    if finished.returncode != 0:
        no_library = len(packages) > 1 and _NO_C_LIBRARY.search(finished.stderr)
        hint = f"the C library is missing: apt-get install {' '.join(packages[1:])}" if no_library else ""
        raise CommandFailed(f"{what} failed:\n{first_errors(finished.stderr)}", finished.stderr, hint=hint)
    return finished.stdout


def first_errors(output: str) -> str:
    """The lines of a GCC or ld message that name an error, at most four; the last lines when none does."""
    lines = [line for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"error:|undefined reference|multiple definition|overflowed", line)]
    return "\n".join((errors or lines[-_ERROR_LINES:])[:_ERROR_LINES])


def compile_sources(
    target: Target,
    runtime: Runtime,
    sources: Sequence[Source],
    out: Path,
    *,
    flags: Sequence[str] = (),
    include: Sequence[Path] = (),
    log: Callable[[str], None] = lambda line: None,
    progress: Callable[..., None] = lambda message, fraction=None: None,
) -> list[Path]:
    """Object files of `sources`, in their order, in folder `out`. `include` comes before the runtime's own folders."""
    out.mkdir(parents=True, exist_ok=True)
    folders = [f"-I{folder}" for folder in (*include, *runtime.include)]
    common = [*target.compiler.flags, *runtime.compile_flags, "-g", *SECTIONS, *flags, *folders]
    done = 0

    def compile_one(numbered: tuple[int, Source]) -> Path:
        nonlocal done
        index, source = numbered
        target_file = out / f"{index:03d}_{source.path.stem}.o"
        arguments = [target.compiler.command, *common, *source.flags]
        run_command(
            [*arguments, "-c", str(source.path), "-o", str(target_file)],
            f"compiling {source.path.name}",
            log,
            packages=target.compiler.packages,
        )
        done += 1
        progress(f"compiled {source.path.name}", done / len(sources))
        return target_file

    with ThreadPoolExecutor(_JOBS) as pool:
        return list(pool.map(compile_one, enumerate(sources)))


def link(
    target: Target,
    runtime: Runtime,
    objects: Sequence[Path],
    elf: Path,
    *,
    map_file: Path | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> None:
    """Link `objects` into `elf`. Raises CommandFailed; its `output` tells an overflowing region from other errors.

    Files below the folder of `elf` are named relative to it, so that the map does not depend on where that is.
    """
    folder = elf.parent

    def named(path: Path) -> str:
        return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)

    arguments = [target.compiler.command, *target.compiler.flags, *runtime.link_flags, "-Wl,--gc-sections"]
    if runtime.linker_script:
        script = elf.with_suffix(".ld")
        script.write_text(runtime.linker_script)
        arguments += ["-T", named(script)]
    if map_file is not None:
        arguments += [f"-Wl,-Map={named(map_file)}"]
    arguments += [*map(named, objects), "-lm", "-o", elf.name]
    run_command(arguments, f"linking {elf.name}", log, cwd=folder, packages=target.compiler.packages)


def binutil(target: Target, name: str) -> str:
    """The tool of the target's tool chain: `addr2line` is `riscv64-unknown-elf-addr2line` beside that gcc."""
    command = target.compiler.command
    tool = command[: -len("gcc")] + name if command.endswith("gcc") else name
    return tool if shutil.which(tool) else name
