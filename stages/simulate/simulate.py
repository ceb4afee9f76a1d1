"""Runs the stage: makes the inputs, runs the firmware, writes what it left."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from stages.simulate.firmware import inputs_file, run_firmware
from stages.simulate.inputs import Inference, make_inputs

if TYPE_CHECKING:
    from stages.base import Job
    from stages.simulate import SimulateConfig

# A network in plain C without any vector instruction takes some ten instructions for each multiplication.
_INSTRUCTIONS_PER_MAC = 100
_INSTRUCTIONS_AT_LEAST = 1_000_000_000


def simulate(job: Job[SimulateConfig]) -> None:
    """Writes inputs.bin (as the firmware read it), outputs.bin, trace.bin, counts.json and inputs.json."""
    model = json.loads((job.inputs["emit"] / "model.json").read_text())
    inferences = make_inputs(job.config.inputs, model["inputs"], job.files, prod(model["outputs"][0]["shape"]))
    data = [inference.data for inference in inferences]
    limit = instruction_limit(job.config.instruction_limit, model)
    run = run_firmware(
        job.inputs["compile"] / "firmware.elf",
        job.target,
        data,
        layers=len(model["layers"]),
        output_bytes=sum(port["bytes"] for port in model["outputs"]),
        trace=job.config.trace,
        instruction_limit=limit,
        timeout=job.config.timeout,
        progress=job.progress,
    )
    counted = job.target.counter != "none"
    counts = {
        "counter": job.target.counter,
        "inferences": [
            {"total": total, "layers": layers} for total, layers in zip(run.totals, run.counts, strict=True)
        ],
        "stack_bytes": run.stack_bytes if counted else None,
    }
    (job.out / "inputs.bin").write_bytes(inputs_file(data, trace=job.config.trace, instruction_limit=limit))
    (job.out / "outputs.bin").write_bytes(run.outputs)
    (job.out / "trace.bin").write_bytes(run.trace)
    (job.out / "counts.json").write_text(json.dumps(counts) + "\n")
    (job.out / "inputs.json").write_text(json.dumps(describe(inferences), indent=1) + "\n")
    runs = f"{len(inferences)} inference{'s' if len(inferences) > 1 else ''}"
    job.log(f"{runs}, {run.totals[0]:,} instructions in the first")


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
    return _INSTRUCTIONS_AT_LEAST + _INSTRUCTIONS_PER_MAC * sum(layer["macs"] for layer in model["layers"])
