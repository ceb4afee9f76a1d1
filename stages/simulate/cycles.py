"""Estimated cycles of the first inference: the same firmware once more, with what its instructions take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.backends.simulators.symbols import place
from stages.backends.timing.disassembly import disassemble
from stages.backends.timing.log import Interval, intervals, readings
from stages.backends.timing.table import timing_table
from stages.base import StageError, no_progress
from stages.simulate.firmware import FirmwareRun, run_firmware

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target

NAMES = ("least", "estimate", "most")


def estimated_cycles(
    elf: Path,
    target: Target,
    inference: bytes,
    counted: FirmwareRun,
    *,
    instruction_limit: int,
    timeout: float,
    progress: Callable[..., None] = no_progress,
) -> dict[str, Any]:
    """`cycles` of counts.json: {model, total, layers}, each {least, estimate, most}.

    `counted` is the run of all inferences, of which `inference` is the first: both have to count the same. Raises
    StageError for an instruction without a class in the target's timing model, naming it.
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
    each, rest = layer_intervals(run, elf, target)
    if run.counts[0] != counted.counts[0]:
        raise _other_instructions()
    return {
        "model": model.name,
        "total": _named([*each, *rest]),
        "layers": [_named([one]) for one in each],
    }


def layer_intervals(run: FirmwareRun, elf: Path, target: Target) -> tuple[list[Interval], list[Interval]]:
    """What each layer of the first inference took in a timed run, and what came behind the last. Raises StageError."""
    layers, between = len(run.counts[0]), intervals(readings(run.cycles))
    # The harness reads the counter before and after each layer, and what is behind a layer's end is the harness's own.
    each, rest = between[: 2 * layers : 2], between[2 * layers :]
    if len(between) != 2 * layers + 1 or [one.instructions for one in each] != run.counts[0]:
        raise _other_instructions()
    for one in (*each, *rest):
        if one.untimed:
            raise _untimed(one.untimed, elf, target)
    return each, rest


def _other_instructions() -> StageError:
    return StageError("the estimate of cycles saw other instructions than were counted")


def _named(parts: Sequence[Interval]) -> dict[str, int]:
    return {name: sum(part.cycles[number] for part in parts) for number, name in enumerate(NAMES)}


def _untimed(address: int, elf: Path, target: Target) -> StageError:
    """The error for an instruction that no class has."""
    assert target.timing_model is not None
    texts = (f"{line.mnemonic} {line.operands}" for line in disassemble(elf, target) if line.address == address)
    instruction = next(texts, f"what lies at {address:#x}").strip()
    return StageError(
        f"timing model {target.timing_model.name} has no class for: {instruction}\nin {place(address, elf, target)}",
        hint="give it one under `timings:`, or set stages.simulate.cycles=false",
    )
