"""Compile published programs, and run them on a simulator with the target's timing model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.backends.simulators.once import first_line_of_version
from stages.backends.simulators.program import code_patterns, run_program
from stages.backends.targets.runtime import code_patterns as runtime_patterns
from stages.backends.targets.runtime import runtime_for
from stages.backends.targets.timing import decoder
from stages.backends.timing.disassembly import disassemble
from stages.backends.timing.fit import Row
from stages.backends.timing.log import COUNTS, LOG, TABLE, interval_counts, intervals, readings
from stages.backends.timing.table import timing_table
from stages.backends.toolchain.compiler import Source, compile_sources, link
from stages.base import StageError
from stages.delivery.bench.silicon.clang import with_clang
from stages.simulate.cycles import untimed_error
from stages.support.system.installation import INSTALLATION
from stages.support.system.scratch import temporary_folder

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.backends.timing.log import Counts
    from stages.base import Cache
    from stages.delivery.bench.silicon.program import Program

_TIMEOUT = 1800
_ELF, _RESULT = "bench.elf", "result.json"
_LINE = re.compile(r"^(COUNT|DIGEST|STATUS) (\w+)(?: (\w+))?$", re.MULTILINE)
# The second of two calls is counted: measurements are means of many, with caches that are warm. Both must compute the
# same.
_MAIN = """\
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static uint32_t state;

static void fill(void *data, size_t bytes)
{{
    for (size_t i = 0; i < bytes; i++) {{
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        ((uint8_t *)data)[i] = (uint8_t)(state >> 8);
    }}
}}

static uint32_t digest(const void *data, size_t bytes)
{{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * 16777619u;
    return hash;
}}

{program}

#ifndef CHECK
#define CHECK() 0
#endif

static void begin(void)
{{
    state = 1;
    memset(OUTPUT, 0, OUTPUT_BYTES);
    prepare(); /* the output may share memory with the input */
}}

int main(void)
{{
    int status;
    begin();
    status = run();
    printf("DIGEST %08lx\\n", (unsigned long)digest(OUTPUT, OUTPUT_BYTES));
    begin();
    BENCH("run", status |= run());
    printf("DIGEST %08lx\\n", (unsigned long)digest(OUTPUT, OUTPUT_BYTES));
    printf("STATUS %d\\n", status | CHECK());
    return 0;
}}
"""


@dataclass(frozen=True)
class Result:
    """One run of a program: instructions, cycles (least, estimate, most; None without a timing model), and the FNV-1a
    hash of its output.
    """

    instructions: int
    cycles: tuple[int, int, int] | None
    output: str


def built(program: Program, target: Target, cache: Cache, tools: Mapping[str, str]) -> Path:
    """Return the linked program, from the cache if possible. `tools` are versions by name. Raises StageError.

    It reads the counter twice: before and after the measured call.
    """
    compiled_for = with_clang(target) if program.clang else target
    headers = sorted(path for folder in program.include for path in folder.rglob("*.h"))
    ingredients = {
        "stage": "silicon program",
        "files": {path.name: _digest(path) for path in (*program.sources, *headers)},
        "main": _MAIN + program.main,
        "more": program.files,
        "flags": program.flags,
        "code": _code(runtime_patterns(target)),
        "target": compiled_for.model_dump(mode="json", include={"family", "compiler", "memory"}),
        "tools": {**tools, "compiler": first_line_of_version(compiled_for.compiler.command)},
    }
    return cache.get(ingredients, lambda folder: _build(program, compiled_for, target, folder)) / _ELF


def _build(program: Program, compiled_for: Target, target: Target, out: Path) -> None:
    runtime = runtime_for(target)
    with temporary_folder("silicon") as folder:
        (folder / "main.c").write_text(_MAIN.format(program=program.main), encoding="utf-8")
        for name, text in program.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        sources = [Source(path) for path in (*program.sources, folder / "main.c")]
        flags = ("-std=gnu11", "-w", *program.flags)
        include = (folder, *program.include)
        objects = compile_sources(compiled_for, runtime, sources, folder / "program", flags=flags, include=include)
        board = [Source(path) for path in (*runtime.sources, *runtime.console)]
        objects += compile_sources(target, runtime, board, folder / "board", flags=("-std=gnu11", "-w", "-O2"))
        link(target, runtime, objects, folder / _ELF)
        (out / _ELF).write_bytes((folder / _ELF).read_bytes())


def measured(elf: Path, target: Target, cache: Cache, tools: Mapping[str, str]) -> Result:
    """Return the result of a program of `built`, from the cache if possible. Raises StageError."""
    table = timing_table(elf, target) if target.is_timed else None
    ingredients = {
        "stage": "silicon run",
        "elf": _digest(elf),
        "table": hashlib.sha256(table or b"").hexdigest(),
        "code": _code((*code_patterns(target), "stages/delivery/bench/silicon/run.py")),
        "simulator": target.model_dump(mode="json", include={"simulator", "memory"}),
        "tools": dict(tools),
    }

    def write(folder: Path) -> None:
        result, _ = _run(elf, target, table)
        (folder / _RESULT).write_text(json.dumps(asdict(result)) + "\n", encoding="utf-8")

    content: dict[str, Any] = json.loads((cache.get(ingredients, write) / _RESULT).read_text(encoding="utf-8"))
    cycles = content["cycles"] and tuple(content["cycles"])
    return Result(content["instructions"], cycles, content["output"])


def fit_row(elf: Path, target: Target, published: float) -> Row:
    """Return a program of `built` with the counts of its instructions, for the fit of its timing model."""
    assert target.timing_model is not None
    result, counts = _run(elf, target, timing_table(elf, target, counts=True))
    assert result.cycles is not None
    decode = decoder(target.timing_model.instructions).decode
    instructions = sorted(decode(disassemble(elf, target)), key=lambda one: one.address)
    row = Row(instructions, counts, 0, published).reduced()
    return replace(row, waits=result.cycles[1] - row.cycles(target.timing_model))


def _run(elf: Path, target: Target, table: bytes | None) -> tuple[Result, dict[int, Counts]]:
    """Run a program. Returns the result of the measured call, and counts by number if the table asks for them."""
    with temporary_folder("silicon") as folder:
        if table is not None:
            (folder / TABLE).write_bytes(table)
        finished = run_program(elf, target, folder, timeout=_TIMEOUT, timed=table is not None)
        lines: dict[str, list[str]] = {}
        for kind, first, second in _LINE.findall(finished.output):
            lines.setdefault(kind, []).append(second or first)
        if finished.exit_code or "STATUS" not in lines:
            raise StageError(f"the program ended with status {finished.exit_code}: {finished.output[-200:].strip()}")
        if lines["STATUS"] != ["0"]:
            raise StageError(f"the function returned {lines['STATUS'][0]}, not success")
        first, second = lines["DIGEST"]
        if first != second:
            raise StageError("the second call computed another output than the first")
        if table is None:
            return Result(int(lines["COUNT"][0]), None, first), {}
        (interval,) = intervals(readings((folder / LOG).read_bytes()))
        if interval.untimed:
            raise untimed_error(interval.untimed, elf, target)
        counts = interval_counts((folder / COUNTS).read_bytes())[0] if (folder / COUNTS).exists() else {}
        return Result(interval.instructions, interval.cycles, first), counts


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _code(patterns: tuple[str, ...]) -> str:
    paths = sorted({path for pattern in patterns for path in INSTALLATION.glob(pattern) if path.is_file()})
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()
