"""Run a firmware with files of the harness protocol.

See docs/maintainers/contracts.md, "Firmware harness".
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stages.backends.simulators.process import Finished
from stages.backends.simulators.program import run_program
from stages.backends.targets.attached import DEVICES_LOG
from stages.backends.targets.spec import Target
from stages.backends.timing.log import LOG, TABLE
from stages.base import StageError, no_progress
from stages.support.system.scratch import temporary_folder

_INPUTS_MAGIC = int.from_bytes(b"FLIN", "little")
# Upper bound of the instructions of start-up code and harness, for all inferences.
_INSTRUCTIONS_OUTSIDE = 1_000_000_000
_DONE_MAGIC = int.from_bytes(b"FLDN", "little")
_FLAG_TRACE = 1
#: Exit codes of stages/backends/harness/main.c and, the last, stages/backends/qemu/runtime/counter.c.
_FAILURES = {
    2: "inputs.bin is missing",
    3: "inputs.bin has no valid header",
    4: "inputs.bin ends before the last inference",
    5: "results could not be written: the disk is full, or ulimit -f is reached",
    6: "counter.bin of QEMU's plug-in is missing",
}


@dataclass(frozen=True)
class FirmwareRun:
    """Results of a run.

    outputs      bytes of all outputs, inference after inference
    trace        bytes of all traces, inference after inference; empty if not requested
    counts       per inference the instructions of each layer
    totals       per inference the instructions of model_run
    stack_bytes  peak stack use
    devices      log of accelerators and DMA, or ''
    cycles       log of estimated cycles (stages/backends/timing/log.py); empty if not requested
    """

    outputs: bytes
    trace: bytes
    counts: list[list[int]]
    totals: list[int]
    stack_bytes: int
    devices: str = ""
    cycles: bytes = b""


def write_inputs(path: Path, inferences: Sequence[bytes | memoryview], *, trace: bool, instruction_limit: int) -> None:
    """Write inputs.bin: a header of 24 bytes, then the inputs of each inference."""
    flags = _FLAG_TRACE if trace else 0
    with path.open("wb") as file:
        file.write(struct.pack("<IIIIQ", _INPUTS_MAGIC, len(inferences), flags, 0, instruction_limit))
        file.writelines(inferences)


def run_firmware(
    elf: Path,
    target: Target,
    inferences: Sequence[bytes | memoryview],
    *,
    layers: int,
    output_bytes: int,
    trace: bool = False,
    instruction_limit: int = 0,
    timeout: float = 600,
    progress: Callable[..., None] = no_progress,
    timing: bytes = b"",
    on: Callable[[Path, Path, Callable[[], None]], Finished] | None = None,
) -> FirmwareRun:
    """Run `elf` on each of `inferences` (bytes of all inputs, concatenated).

    layers             MODEL_LAYER_COUNT
    output_bytes       size of all outputs of one inference
    instruction_limit  of one inference; 0: none. Also limits the program, so that a hang in start-up code ends
    timing             table of stages/backends/timing/table.py, to estimate cycles
    on                 runs the program in place of the target's simulator: on(elf, folder, watch)

    Raises StageError for a trap, a hang, a failed sanitizer check, or incomplete results.
    """
    most = _INSTRUCTIONS_OUTSIDE + len(inferences) * instruction_limit if instruction_limit else 0
    with temporary_folder("run") as folder:
        write_inputs(folder / "inputs.bin", inferences, trace=trace, instruction_limit=instruction_limit)
        if timing:
            (folder / TABLE).write_bytes(timing)

        def watch() -> None:
            written = (folder / "outputs.bin").stat().st_size if (folder / "outputs.bin").exists() else 0
            count = written // max(output_bytes, 1)
            progress(f"{count} of {len(inferences)} inferences", count / len(inferences))

        if on is not None:
            finished = on(elf, folder, watch)
        else:
            finished = run_program(
                elf, target, folder, timeout=timeout, most_instructions=most, watch=watch, timed=bool(timing)
            )
        if finished.exit_code != 0:
            reason = _FAILURES.get(finished.exit_code, "\n".join(finished.output.strip()[-300:].splitlines()[-3:]))
            raise StageError(f"the firmware ended with status {finished.exit_code}: {reason}")
        return _collect(folder, len(inferences), layers, output_bytes, most)


def _collect(folder: Path, inferences: int, layers: int, output_bytes: int, most: int) -> FirmwareRun:
    done_file = folder / "done.bin"
    content = done_file.read_bytes() if done_file.exists() else b""
    if len(content) != 8 or int.from_bytes(content[:4], "little") != _DONE_MAGIC:
        detail = f"; it exited, or it hung outside of an inference and was stopped after {most:,} instructions"
        raise StageError(f"the firmware stopped before it wrote its last result{detail if most else ''}")
    outputs = _result(folder / "outputs.bin", inferences * output_bytes)
    counts = _result(folder / "counts.bin", inferences * struct.calcsize(f"<{layers + 1}Q"))
    rows = [list(row) for row in struct.iter_unpack(f"<{layers + 1}Q", counts)]
    trace, devices, cycles = folder / "trace.bin", folder / DEVICES_LOG, folder / LOG
    return FirmwareRun(
        outputs=outputs,
        trace=trace.read_bytes() if trace.exists() else b"",
        counts=[row[:-1] for row in rows],
        totals=[row[-1] for row in rows],
        stack_bytes=int.from_bytes(content[4:], "little"),
        devices=devices.read_text() if devices.exists() else "",
        cycles=cycles.read_bytes() if cycles.exists() else b"",
    )


def _result(path: Path, expected: int) -> bytes:
    """Read a file that the firmware wrote.

    Raises StageError if its size differs from `expected`.
    """
    content = path.read_bytes() if path.exists() else b""
    if len(content) != expected:
        raise StageError(f"the firmware wrote {len(content):,} bytes of {path.name}, expected {expected:,}")
    return content
