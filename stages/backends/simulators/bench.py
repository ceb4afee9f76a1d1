"""Compile C files with a `main`, run them on a target's simulator, read output and counts.

For tests of kernels and for measuring their cost. The C side includes `bench.h`: printf works, `BENCH(name, call)`
counts instructions.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stages.backends.simulators.program import run_program
from stages.backends.targets.runtime import runtime_for
from stages.backends.targets.spec import Target
from stages.backends.toolchain.compiler import WARNINGS, Source, compile_sources, link
from stages.support.messages.stage_error import StageError
from stages.support.system.scratch import temporary_folder

_COUNT = re.compile(r"^COUNT (\S+) (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class BenchRun:
    """Result of a program: `stdout`, instructions by BENCH name, and files that it wrote."""

    stdout: str
    counts: dict[str, int]
    files: dict[str, bytes] = field(default_factory=dict)


def compile_and_run_c(
    target: Target,
    sources: Sequence[Path | Source],
    main: str,
    *,
    include: Sequence[Path] = (),
    flags: Sequence[str] = ("-O2",),
    files: Mapping[str, bytes] | None = None,
    outputs: Sequence[str] = (),
    timeout: float = 120,
) -> BenchRun:
    """Compile `sources` and the text `main` (C with `int main(void)`), run them, return output.

    `files` are put into the program's current directory (`board_open_read`); `outputs` are read back from it.
    Compiled as gnu11 with -Wall -Wextra -Werror. Raises StageError when it does not compile, traps, or ends
    with another status than 0.
    """
    runtime = runtime_for(target)
    with temporary_folder("bench") as folder:
        (folder / "main.c").write_text(main)
        wanted = [source if isinstance(source, Source) else Source(source) for source in sources]
        board = [Source(path) for path in (*runtime.sources, *runtime.console)]
        objects = compile_sources(
            target,
            runtime,
            [*wanted, Source(folder / "main.c"), *board],
            folder / "obj",
            flags=("-std=gnu11", *WARNINGS, *flags),
            include=include,
        )
        elf = folder / "bench.elf"
        link(target, runtime, objects, elf)
        for file, data in (files or {}).items():
            (folder / file).write_bytes(data)
        finished = run_program(elf, target, folder, timeout=timeout)
        if finished.exit_code != 0:
            raise StageError(f"the program ended with status {finished.exit_code}:\n{finished.output[-400:].strip()}")
        counts = {name: int(value) for name, value in _COUNT.findall(finished.output)}
        return BenchRun(finished.output, counts, {file: (folder / file).read_bytes() for file in outputs})
