"""Estimate the first inference's cycles, in a second run with a timing model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stages.backends.simulators.symbols import place
from stages.backends.targets.spec import Target
from stages.backends.timing.disassembly import disassemble
from stages.backends.timing.log import Interval, intervals, readings
from stages.backends.timing.table import timing_table
from stages.base import StageError, no_progress
from stages.simulate.firmware import FirmwareRun, run_firmware

NAMES = ("least", "estimate", "most")


def estimated_cycles(
    elf: Path,
    target: Target,
    inference: bytes | memoryview,
    counted: FirmwareRun,
    *,
    instruction_limit: int,
    timeout: float,
    calls: Sequence[Sequence[int]] = (),
    progress: Callable[..., None] = no_progress,
) -> dict[str, Any]:
    """Return `cycles` of counts.json: {model, total, layers}.

    total and layers have {least, estimate, most}. `counted` is the run of all inferences; `inference` is the first.
    Raises StageError if both runs count different instructions, or if an instruction has no class in the target's
    timing model.
    """
    model = target.timing_model
    assert model is not None
    layers = len(counted.counts[0])
    progress("estimating cycles")
    run = run_firmware(
        elf,
        target,
        [inference],
        layers=layers,
        output_bytes=len(counted.outputs) // len(counted.counts),
        instruction_limit=instruction_limit,
        timeout=timeout,
        progress=progress,
        timing=timing_table(elf, target),
    )
    of_layers, after = layer_intervals(run, elf, target, [call[0] for call in calls])
    if run.counts[0] != counted.counts[0]:
        raise _other_instructions()
    return {
        "model": model.name,
        "total": _sums([*(interval for layer in of_layers for interval in layer), *after]),
        "layers": [_sums(intervals) for intervals in of_layers],
    }


def layer_intervals(
    run: FirmwareRun, elf: Path, target: Target, calls: Sequence[int] = ()
) -> tuple[list[list[Interval]], list[Interval]]:
    """Return each layer's intervals in a timed first inference, and those after the last.

    `calls` are the layers in the order of their calls, if a layer has several.
    Raises StageError if a layer's instructions differ from the counts, or an instruction has no timing class.
    """
    layers, between = len(run.counts[0]), intervals(readings(run.cycles))
    # The harness reads the counter before and after each layer. The intervals between two layers are the harness's.
    # Between two rows that the caller passes the harness reads the counter too: -1.
    called = list(calls or range(layers))
    called = [*called[1:], -1] if called[0] == -1 else [*called, -1]
    of_layers: list[list[Interval]] = [[] for _ in range(layers + 1)]
    for layer, interval in zip(called, between[::2], strict=False):
        of_layers[layer].append(interval)
    after = of_layers.pop()
    counted = [sum(interval.instructions for interval in layer) for layer in of_layers]
    if len(between) != 2 * len(called) - 1 or counted != run.counts[0]:
        raise _other_instructions()
    for interval in (*(interval for layer in of_layers for interval in layer), *after):
        if interval.untimed:
            raise untimed_error(interval.untimed, elf, target)
    return of_layers, after


def _other_instructions() -> StageError:
    return StageError("the run that estimates cycles executed other instructions than the counted run")


def _sums(intervals: Sequence[Interval]) -> dict[str, int]:
    return {name: sum(interval.cycles[number] for interval in intervals) for number, name in enumerate(NAMES)}


def untimed_error(address: int, elf: Path, target: Target) -> StageError:
    """Return the error for an instruction without a timing class."""
    assert target.timing_model is not None
    texts = (f"{line.mnemonic} {line.operands}" for line in disassemble(elf, target) if line.address == address)
    instruction = next(texts, f"the instruction at {address:#x}").strip()
    return StageError(
        f"timing model {target.timing_model.name} has no class for: {instruction}\nin {place(address, elf, target)}",
        hint="add a class under `timings:`, or set stages.simulate.cycles=false",
    )
