"""Compile published programs, and run them on a simulator with the target's timing model."""

import hashlib
import json
import re
import shutil
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from stages.backends.simulators.once import first_line_of_version
from stages.backends.simulators.process import Finished
from stages.backends.simulators.program import code_patterns, run_program
from stages.backends.targets.runtime import code_patterns as runtime_patterns
from stages.backends.targets.runtime import runtime_for
from stages.backends.targets.spec import Target
from stages.backends.targets.timing import decoder
from stages.backends.timing.disassembly import disassemble
from stages.backends.timing.fit import CountedRun
from stages.backends.timing.log import COUNTS, LOG, TABLE, Counts, interval_counts, intervals, readings
from stages.backends.timing.table import timing_table
from stages.backends.toolchain.compiler import Source, compile_sources, link
from stages.base import Cache, StageError
from stages.delivery.bench.silicon.compilers import uses_clang, with_compiler
from stages.delivery.bench.silicon.program import Program
from stages.simulate.cycles import untimed_error
from stages.support.system.installation import INSTALLATION
from stages.support.system.scratch import temporary_folder

_TIMEOUT = 1800
_THIS = "stages/delivery/bench/silicon/run.py"
_ELF, _INPUTS, _RESULT = "bench.elf", "inputs.bin", "result.json"
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
    """Result of a program's run: instructions, cycles, and a hash of its output.

    Cycles are (least, estimate, most), None without a timing model.
    """

    instructions: int
    cycles: tuple[int, int, int] | None
    output: str


def built(program: Program, target: Target, cache: Cache, tools: Mapping[str, str]) -> Path:
    """Return the linked program, from the cache if possible.

    `tools` are versions by name. Raises StageError.

    The program reads the counter before and after the measured call.
    """
    compiled_for = with_compiler(target, program.compiler)
    headers = sorted(path for folder in program.include for path in folder.rglob("*.h"))
    ingredients = {
        "stage": "silicon program",
        "files": [(path.name, _digest(path)) for path in (*program.sources, *headers)],
        "main": _MAIN + program.main,
        "more": program.files,
        "flags": program.flags,
        "code": _code((*runtime_patterns(target), _THIS)),
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
        sources = [Source(path) for path in (*program.sources, *sorted(folder.glob("*.c")))]
        flags = ("-std=gnu11", "-w", *program.flags)
        include = (folder, *program.include)
        objects = compile_sources(compiled_for, runtime, sources, folder / "program", flags=flags, include=include)
        board = [Source(path) for path in (*runtime.sources, *runtime.console)]
        objects += compile_sources(target, runtime, board, folder / "board", flags=("-std=gnu11", "-w", "-O2"))
        link(target if uses_clang(program.compiler) else compiled_for, runtime, objects, folder / _ELF)
        shutil.copy(folder / _ELF, out)  # with its mode: QEMU runs Linux programs only if they are executable


def firmware(elf: Path, inputs: Path, cache: Cache) -> Path:
    """Return a copy of a network's firmware, with the first inference's input beside it."""
    digests = {"elf": _digest(elf), "inputs": _digest(inputs)}

    def write(folder: Path) -> None:
        content = inputs.read_bytes()
        shutil.copy(elf, folder / _ELF)
        # The second word is the number of inferences, the third says whether to write traces.
        (folder / _INPUTS).write_bytes(content[:4] + struct.pack("<II", 1, 0) + content[12:])

    return cache.get({"stage": "silicon firmware", **digests}, write) / _ELF


def measured(elf: Path, target: Target, cache: Cache, tools: Mapping[str, str]) -> Result:
    """Return the result of a program of `built` or `firmware`, from the cache if possible.

    Raises StageError.
    """
    table = timing_table(elf, target) if target.is_timed else None
    ingredients = {
        "stage": "silicon run",
        "elf": _digest(elf),
        "inputs": _digest(elf.with_name(_INPUTS)) if elf.with_name(_INPUTS).exists() else "",
        "table": hashlib.sha256(table or b"").hexdigest(),
        "code": _code((*code_patterns(target), _THIS)),
        "simulator": target.model_dump(mode="json", include={"simulator", "memory"}),
        "tools": dict(tools),
    }

    def write(folder: Path) -> None:
        result, _ = _run(elf, target, table)
        (folder / _RESULT).write_text(json.dumps(asdict(result)) + "\n", encoding="utf-8")

    content: dict[str, Any] = json.loads((cache.get(ingredients, write) / _RESULT).read_text(encoding="utf-8"))
    cycles = content["cycles"] and tuple(content["cycles"])
    return Result(content["instructions"], cycles, content["output"])


def fit_row(elf: Path, target: Target, published: float) -> CountedRun:
    """Return a program with its counts of instructions, to fit its timing model."""
    assert target.timing_model is not None
    result, counts = _run(elf, target, timing_table(elf, target, counts=True))
    assert result.cycles is not None
    decode = decoder(target.timing_model.instructions).decode
    instructions = sorted(decode(disassemble(elf, target)), key=lambda instruction: instruction.address)
    row = CountedRun(instructions, counts, 0, published).reduced()
    return replace(row, waits=result.cycles[1] - row.cycles(target.timing_model))


def _run(elf: Path, target: Target, table: bytes | None) -> tuple[Result, dict[int, Counts]]:
    """Run a program.

    Returns the result of the measured call, and counts by number if the table asks for them.
    """
    inputs = elf.with_name(_INPUTS)
    with temporary_folder("silicon") as folder:
        if table is not None:
            (folder / TABLE).write_bytes(table)
        if inputs.exists():
            (folder / _INPUTS).write_bytes(inputs.read_bytes())
        finished = run_program(elf, target, folder, timeout=_TIMEOUT, timed=table is not None)
        output, instructions = _network_output(finished, folder) if inputs.exists() else _program_output(finished)
        if table is None:
            return Result(instructions, None, output), {}
        # A firmware reads the counter before and after each layer: every second interval is that of a layer.
        counted = intervals(readings((folder / LOG).read_bytes()))[::2]
        for interval in counted:
            if interval.untimed:
                raise untimed_error(interval.untimed, elf, target)
        least, estimate, most = (sum(cycles) for cycles in zip(*(each.cycles for each in counted), strict=True))
        counts = interval_counts((folder / COUNTS).read_bytes())[::2] if (folder / COUNTS).exists() else []
        total = sum(each.instructions for each in counted)
        return Result(total, (least, estimate, most), output), _added(counts)


def _program_output(finished: Finished) -> tuple[str, int]:
    """Return hash and instructions that a program of `built` printed. Raises StageError."""
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
    return first, int(lines["COUNT"][0]) if "COUNT" in lines else 0


def _network_output(finished: Finished, folder: Path) -> tuple[str, int]:
    """Return a hash of the output of a network's firmware, and its instructions.

    Raises StageError.
    """
    if finished.exit_code or not (folder / "done.bin").exists():
        raise StageError(f"the firmware ended with status {finished.exit_code}: {finished.output[-200:].strip()}")
    total = (folder / "counts.bin").read_bytes()[-8:]  # after the counts of the layers
    return _digest(folder / "outputs.bin")[:8], int.from_bytes(total, "little")


def _added(counts: Sequence[Mapping[int, Counts]]) -> dict[int, Counts]:
    """Return the sums of counts by number."""
    sums: dict[int, Counts] = {}
    for interval in counts:
        for number, (followed, entered, jumped, missed) in interval.items():
            before = sums.get(number, (0, 0, 0, 0))
            sums[number] = (before[0] + followed, before[1] + entered, before[2] + jumped, before[3] + missed)
    return sums


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _code(patterns: tuple[str, ...]) -> str:
    paths = sorted({path for pattern in patterns for path in INSTALLATION.glob(pattern) if path.is_file()})
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()
