"""Calls of the C compiler and the linker, with errors that a user can act on."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from stages.backends.targets.runtime import Runtime
from stages.backends.targets.spec import Target
from stages.backends.toolchain.objects import ObjectCache
from stages.backends.toolchain.originals import with_originals
from stages.support.messages.stage_error import StageError
from stages.support.system.programs import run_tool

WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Werror=implicit-function-declaration")
#: Each function and object in a section of its own, so that the linker drops what nothing calls.
SECTIONS = ("-ffunction-sections", "-fdata-sections")
# What GCC and ld print where only the C library's package is missing: picolibc, newlib and the GNU C library.
_NO_C_LIBRARY = re.compile(
    r"cannot read spec file 'picolibc\.specs'|fatal error: (?:stdint|stddef|string|stdlib|stdio|math|fcntl)\.h: No such"
    r"|cannot find (?:-lc\b|crt1\.o)"
)
_JOBS = 2
_ERROR_LINES = 4
_LINE, _PLACE = 200, 80
_FIRST_LINE = 5 * _LINE  # the first error is whole
# GCC's errors, and those of ld, which marks few as such: `ld: cannot find -lfoo`, `relocation truncated to fit`.
_ERROR = re.compile(
    r"error:|Error:|undefined reference|multiple definition|overflowed|will not fit|not defined|syntax error"
    r"|cannot (?:find|open|move|use|represent)|can't (?:link|open)|relocation truncated|dangerous relocation"
    r"|uses \S+ (?:arguments|ABI|float)|not recogni[sz]ed|failed to merge|incompatible|discarded|overlaps"
    r"|No such file|No space left|File too large|file truncated|bad value|assertion fail|Killed|terminated"
)
_WARNING = re.compile(r"\bwarning:|\bnote:|In function `|in function `[^']*':$")
_DRIVER = re.compile(r"^collect2: (?:error|fatal error): ld returned \d+ exit status|^compilation terminated\.$")
_CAUSES = (
    (re.compile(r"No space left on device"), "the disk for temporary files is full: free some, or set TMPDIR"),
    (re.compile(r"File too large|File size limit exceeded"), "raise the largest size of a file with ulimit -f"),
    (re.compile(r"Too many open files"), "raise the number of open files with ulimit -n"),
    (
        re.compile(r"Killed signal terminated|ld terminated with signal 9"),
        "another process killed it; the system does so when memory runs out",
    ),
    (re.compile(r"Cannot allocate memory|out of memory|virtual memory exhausted|memory exhausted"), "out of memory"),
)
# GCC's manual, "Environment Variables Affecting GCC"; LANG and LC_* are set, TMPDIR changes no output.
_READ_BY_GCC = {
    *("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH", "LD_RUN_PATH", "LDEMULATION"),
    *("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "GCC_COMPARE_DEBUG"),
}


@dataclass(frozen=True)
class Source:
    """A C or assembly file, and flags for this file only."""

    path: Path
    flags: tuple[str, ...] = ()


class CommandFailed(StageError):
    """A compiler or linker failed; `arguments` is the call, `output` all that it printed."""

    def __init__(self, message: str, arguments: Sequence[str], output: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.arguments, self.output = tuple(arguments), output


def run_command(
    arguments: Sequence[str],
    what: str,
    log: Callable[[str], None] = lambda line: None,
    cwd: Path | None = None,
    packages: Sequence[str] = (),
    shown: Callable[[str], str] = str,
) -> str:
    """Return the standard output of a tool.

    Raises CommandFailed with its first errors, or StageError.
    `packages` of the compiler and its C library are for the hint if the library is missing. `shown` converts the
    printed text before errors are extracted from it.
    """
    log(" ".join(arguments))
    try:
        finished = run_tool(arguments, cwd=cwd, environment=_environment())
    except StageError as error:
        raise StageError(f"{what} failed: {error.message}", hint=error.hint) from None
    if finished.stderr:
        log(finished.stderr.rstrip())
    if finished.returncode != 0:
        no_library = len(packages) > 1 and _NO_C_LIBRARY.search(finished.stderr)
        hint = f"the C library is missing: apt-get install {' '.join(packages[1:])}" if no_library else ""
        hint = hint or next((text for pattern, text in _CAUSES if pattern.search(finished.stderr)), "")
        said = first_errors(shown(finished.stderr))
        raise CommandFailed(f"{what} failed:\n{said}", arguments, finished.stderr, hint=hint)
    return finished.stdout


def _environment() -> dict[str, str]:
    """Return this process's environment without variables that make GCC read other files.

    Messages are in English and ASCII, whoever runs it.
    """
    return {**{name: value for name, value in os.environ.items() if name not in _READ_BY_GCC}, "LC_ALL": "C"}


def first_errors(output: str) -> str:
    """Return up to four lines of a GCC or ld message that state errors; else the last lines.

    The first has up to _FIRST_LINE characters: `#error` and ld say there what to do. The others are shortened.
    """
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    # What the driver adds when the linker has failed says nothing.
    telling = [line for line in lines if not _DRIVER.search(line)]
    errors = [line for line in telling if _ERROR.search(line) and not _WARNING.search(line)]
    chosen = errors or [line for line in telling if not _WARNING.search(line)] or lines
    chosen = chosen[:_ERROR_LINES] if errors else chosen[-_ERROR_LINES:]
    first, *others = dict.fromkeys(chosen) or ("it gave no reason",)
    return "\n".join((_short(first, _FIRST_LINE), *map(_short, others)))


def _short(line: str, limit: int = _LINE) -> str:
    """Shorten a line to `limit` characters: the end of its path and the beginning of its text."""
    place, mark, text = line.partition(": ")
    if len(place) > _PLACE:
        place = f"...{place[-_PLACE:]}"
    line = f"{place}{mark}{text}"
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


def compile_sources(
    target: Target,
    runtime: Runtime,
    sources: Sequence[Source],
    out: Path,
    *,
    flags: Sequence[str] = (),
    include: Sequence[Path] = (),
    objects: ObjectCache | None = None,
    log: Callable[[str], None] = lambda line: None,
    progress: Callable[..., None] = lambda message, fraction=None: None,
) -> list[Path]:
    """Compile `sources` into folder `out` and return the object files in the same order.

    `include` precedes the runtime's own folders.

    `objects` has objects of earlier runs.
    """
    out = out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    folders = [f"-I{folder}" for folder in (*include, *runtime.include)]
    common = [*target.compiler.flags_to_compile, *runtime.compile_flags, "-g", *SECTIONS, *flags, *folders]
    done = 0

    def compile_one(numbered: tuple[int, Source]) -> Path:
        nonlocal done
        index, source = numbered
        target_file = out / f"{index:03d}_{source.path.stem}.o"
        arguments = [target.compiler.command, *common, *source.flags]

        def compile_to(file: Path) -> None:
            try:
                run_command(
                    [*arguments, "-c", str(source.path), "-o", str(file)],
                    f"compiling {source.path.name}",
                    log,
                    cwd=out,  # which debug information names
                    packages=target.compiler.packages,
                    shown=partial(with_originals, target=target),
                )
            except CommandFailed as error:
                if not error.hint:
                    _check_flags(target, file)
                raise

        headers = (*include, *runtime.include)
        if objects is None or not objects.bring(source.path, arguments, headers, target_file, compile_to):
            compile_to(target_file)
        done += 1
        progress(f"compiled {source.path.name}", done / len(sources))
        return target_file

    with ThreadPoolExecutor(_JOBS) as pool:
        return list(pool.map(compile_one, enumerate(sources)))


def _check_flags(target: Target, out: Path) -> None:
    """Raise StageError if the core's flags are wrong: the compiler refuses an empty file too."""
    compiler = target.compiler
    arguments = [compiler.command, *compiler.flags_to_compile, "-c", "-x", "c", os.devnull, "-o", str(out)]
    try:
        run_command(arguments, "compiling an empty file")
    except CommandFailed as error:
        reason = first_errors(error.output).partition("\n")[0]
        key = "compile_flags" if compiler.compile_flags else "flags"  # planning has compiled with `flags` alone
        flags: tuple[str, ...] = getattr(compiler, key)
        wrong = next((flag for flag in flags if flag.rpartition("=")[2] in reason), " ".join(flags))
        raise StageError(
            f"{compiler.command} refuses {wrong} in compiler.{key} of core {target.core}:\n{reason}",
            hint="Correct it, or name a compiler that knows it.",
            at=("cores", target.core, "compiler", key),
        ) from None


def link(
    target: Target,
    runtime: Runtime,
    objects: Sequence[Path],
    elf: Path,
    *,
    map_file: Path | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> None:
    """Link `objects` into `elf`.

    Raises CommandFailed, whose `output` shows an overflowing region.
    Files below the folder of `elf` are named relative to it, so that the map does not depend on its location.
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
    """Return a tool of the target's toolchain: `riscv64-unknown-elf-addr2line` for `addr2line`."""
    command = target.compiler.command
    tool = command[: -len("gcc")] + name if command.endswith("gcc") else name
    return tool if shutil.which(tool) else name
