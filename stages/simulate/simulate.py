"""Runs the stage: makes the inputs, runs the firmware, writes what it left."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.base import StageError
from stages.samples.files import Inference
from stages.simulate.firmware import FirmwareRun, inputs_file, run_firmware
from stages.simulate.inputs import make_inputs
from stages.simulators.process import InstructionLimitReached, ProgramLimitReached

if TYPE_CHECKING:
    from stages.base import Job
    from stages.simulate import SimulateConfig
    from stages.targets.spec import Target

# What a correct firmware stays below: so many times what its layers are expected to take, and more for small ones.
_GENEROUS = 30
_INSTRUCTIONS_AT_LEAST = 1_000_000_000
# Of a layer of which nothing is known: a network in plain C takes some ten instructions for each multiplication.
_INSTRUCTIONS_PER_MAC, _INSTRUCTIONS_PER_ELEMENT = 10, 50
_RAISE = "`set=stages.simulate.instruction_limit=N` raises the limit, 0 turns it off"


def simulate(job: Job[SimulateConfig]) -> None:
    """Writes inputs.bin (as the firmware read it), outputs.bin, trace.bin, counts.json and inputs.json."""
    model = json.loads((job.inputs["emit"] / "model.json").read_text())
    inferences = make_inputs(
        job.config.inputs, model["inputs"], job.files, prod(model["outputs"][0]["shape"]), stateful="state" in model
    )
    data = [inference.fed if "state" in model else inference.data for inference in inferences]
    limit = instruction_limit(job.config.instruction_limit, model)
    try:
        run = run_firmware(
            _simulated(job.inputs["compile"], job.target),
            job.target.in_simulator,
            data,
            layers=len(model["layers"]),
            output_bytes=sum(port["bytes"] for port in model["outputs"]),
            trace=job.config.trace,
            instruction_limit=limit,
            timeout=job.config.timeout,
            progress=job.progress,
        )
    except InstructionLimitReached as reached:
        raise StageError(
            f"the instruction limit of {limit:,} for one inference was reached: the firmware hangs, or takes more\n"
            f"in {reached.where}",
            hint=f"its layers were expected to take {round(expected_instructions(model)):,}; {_RAISE}",
        ) from None
    except ProgramLimitReached as reached:
        raise StageError(f"the firmware was stopped: {reached.message}", hint=_RAISE) from None
    counts = _counts(run, job.target, model["layers"])
    for warning in counts["warnings"]:
        job.log(f"warning: {warning}")
    (job.out / "inputs.bin").write_bytes(inputs_file(data, trace=job.config.trace, instruction_limit=limit))
    (job.out / "outputs.bin").write_bytes(run.outputs)
    (job.out / "trace.bin").write_bytes(run.trace)
    (job.out / "counts.json").write_text(json.dumps(counts) + "\n")
    (job.out / "inputs.json").write_text(json.dumps(describe(inferences), indent=1) + "\n")
    runs = f"{len(inferences)} inference{'s' if len(inferences) > 1 else ''}"
    job.log(f"{runs}, {run.totals[0]:,} instructions in the first")


def _counts(run: FirmwareRun, target: Target, layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The content of counts.json."""
    found: list[dict[str, Any]] = [
        {"total": total, "layers": each} for total, each in zip(run.totals, run.counts, strict=True)
    ]
    counts: dict[str, Any] = {
        "counter": target.counter,
        "inferences": found,
        "stack_bytes": run.stack_bytes if target.counter != "none" else None,
        "warnings": [],
    }
    if target.accelerator is not None:
        from stages.simulate.devices import device_times, entries, timeline, warnings

        log = entries(run.devices)
        for inference, units in zip(found, device_times(log, len(layers)), strict=True):
            inference["units"] = units
        counts["timeline"] = timeline(log)
        counts["warnings"] = warnings(log, layers)
    return counts


def _simulated(compiled: Path, target: Target) -> Path:
    """The firmware for the simulator's machine. Raises StageError where it did not fit there."""
    if target.simulated is None:
        return compiled / "firmware.elf"
    if (compiled / "not_simulated.txt").exists():
        problem = (compiled / "not_simulated.txt").read_text().rstrip()
        raise StageError(problem, hint="`doit run NAME:compile` makes the firmware for the board")
    return compiled / "simulated.elf"


def describe(inferences: Sequence[Inference]) -> dict[str, Any]:
    """The content of inputs.json: a name for each inference, and its class or null; no classes at all is null."""
    labels = [inference.label for inference in inferences]
    return {
        "names": [inference.name for inference in inferences],
        "labels": labels if any(label is not None for label in labels) else None,
    }


def instruction_limit(configured: int | None, model: Mapping[str, Any]) -> int:
    """The limit for one inference: as configured, or one that no correct firmware reaches."""
    if configured is not None:
        return configured
    return _INSTRUCTIONS_AT_LEAST + _GENEROUS * round(expected_instructions(model))


def expected_instructions(model: Mapping[str, Any]) -> float:
    """What the layers of model.json are expected to take: what tensorize knows of them, or by their size."""
    return float(sum(_by_size(layer) if layer["cost"] is None else layer["cost"] for layer in model["layers"]))


def _by_size(layer: Mapping[str, Any]) -> float:
    elements = prod(layer["shape_in"]) + prod(layer["shape_out"])
    return float(_INSTRUCTIONS_PER_MAC * layer["macs"] + _INSTRUCTIONS_PER_ELEMENT * elements)
