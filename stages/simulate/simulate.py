"""Run the stage: make the inputs, run the firmware, write its results."""

import json
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from stages.backends.simulators.process import Finished, InstructionLimitReached, ProgramLimitReached
from stages.backends.targets.spec import Target
from stages.base import Job, StageError
from stages.ir.samples.files import Inference
from stages.ir.samples.sample_warnings import clipping_warning
from stages.ir.samples.wav import model_rate
from stages.simulate.config import SimulateConfig
from stages.simulate.cycles import estimated_cycles
from stages.simulate.firmware import FirmwareRun, run_firmware, write_inputs
from stages.simulate.inputs import make_inputs, recordings

# Default instruction limit: this factor of the expected instructions, and at least a minimum.
_LIMIT_FACTOR = 30
_INSTRUCTIONS_AT_LEAST = 1_000_000_000
# For layers without a cost: plain C takes about ten instructions per multiplication.
_INSTRUCTIONS_PER_MAC, _INSTRUCTIONS_PER_ELEMENT = 10, 50
# A board runs at 1 MHz or more after a reset. This is a low estimate of its instructions per second.
_STALL_SECONDS, _SLOWEST = 10.0, 100_000.0
_RAISE = "`set=stages.simulate.instruction_limit=N` sets the limit, 0 disables it"


def simulate(job: Job[SimulateConfig]) -> None:
    """Write inputs.bin (as read by the firmware), outputs, trace, counts.json, inputs.json."""
    model = json.loads((job.inputs["emit"] / "model.json").read_text())
    rate, classes = model_rate(job.model), prod(model["outputs"][0]["shape"])
    stateful, fill = "state" in model, _runs_to_fill(job)
    inferences = make_inputs(
        job.config.inputs, model["inputs"], job.files, classes, stateful=stateful, rate=rate, fill=fill
    )
    audio = recordings(job.config.inputs, inferences, model["inputs"], job.files, rate)
    for warning in audio["warnings"] if audio is not None else ():
        job.log(f"warning: {warning}")
    data = [inference.fed if "state" in model else inference.data for inference in inferences]
    limit = instruction_limit(job.config.instruction_limit, model)
    board = None if job.config.run_on is None else _Board(job, model)
    elf = simulated(job.inputs["compile"], job.target) if board is None else job.inputs["compile"] / "firmware.elf"
    target = job.target.in_simulator if board is None else job.target
    try:
        run = run_firmware(
            elf,
            target,
            data,
            layers=len(model["layers"]),
            output_bytes=sum(port["bytes"] for port in model["outputs"]),
            trace=job.config.trace,
            instruction_limit=limit,
            timeout=job.config.timeout,
            progress=job.progress,
            on=board,
        )
    except InstructionLimitReached as reached:
        raise StageError(
            f"the instruction limit of {limit:,} for one inference was reached: the firmware hangs, or takes more\n"
            f"in {reached.where}",
            hint=f"expected for its layers: {round(expected_instructions(model)):,}; {_RAISE}",
            at=_blamed(job.config),
        ) from None
    except ProgramLimitReached as reached:
        raise StageError(f"the firmware was stopped: {reached.message}", hint=_RAISE, at=_blamed(job.config)) from None
    counts = _counts(run, job.target, model["layers"]) if board is None else _board_counts(run, board)
    if job.config.cycles and target.timing_model is not None and board is None:
        counts["cycles"] = estimated_cycles(
            elf,
            target,
            data[0],
            run,
            instruction_limit=limit,
            timeout=job.config.timeout,
            calls=model.get("calls", ()),
            progress=job.progress,
        )
    if board is not None and job.config.instruction_limit:
        counts["warnings"].append("instruction_limit has no effect on a board: timeout and stall_seconds limit the run")
    counts["warnings"] += [warning] if (warning := clipping_warning(inferences)) else []
    for warning in counts["warnings"]:
        job.log(f"warning: {warning}")
    counts["warnings"] += audio["warnings"] if audio is not None else []
    write_inputs(job.out / "inputs.bin", data, trace=job.config.trace, instruction_limit=limit)
    (job.out / "outputs.bin").write_bytes(run.outputs)
    (job.out / "trace.bin").write_bytes(run.trace)
    (job.out / "counts.json").write_text(json.dumps(counts) + "\n")
    (job.out / "inputs.json").write_text(json.dumps(describe(inferences, audio), indent=1) + "\n")
    runs = f"{len(inferences)} inference{'s' if len(inferences) > 1 else ''}"
    counted = "instructions" if board is None else f"{board.facts['counter']} at {board.facts['place']}"
    job.log(f"{runs}, {run.totals[0]:,} {counted} in the first")
    if "cycles" in counts:
        job.log(f"{counts['cycles']['total']['estimate']:,} cycles by the timing model {counts['cycles']['model']}")


def _runs_to_fill(job: Job[SimulateConfig]) -> int:
    """Return the inferences that fill an incremental network's window; 0 for others."""
    imported = job.inputs.get("import")
    facts = {} if imported is None else json.loads((imported / "import.json").read_text()).get("incremental", {})
    return -(-facts["window"] // facts["frames"]) if facts else 0


class _Board:
    """A board behind a GDB server. `facts` are the report's facts about it, set by the run."""

    def __init__(self, job: Job[SimulateConfig], model: Mapping[str, Any]) -> None:
        self._job = job
        self._seconds = job.config.stall_seconds or _STALL_SECONDS + expected_instructions(model) / _SLOWEST
        self.facts: dict[str, Any] = {}

    def __call__(self, elf: Path, folder: Path, watch: Callable[[], None]) -> Finished:
        from stages.backends.hardware.run import run_on_board

        job, place = self._job, str(self._job.config.run_on)
        gdb = next(tool.path for tool in job.tools.values() if tool.path)
        result = run_on_board(
            elf,
            job.target,
            place,
            folder,
            gdb_path=gdb,
            stall_seconds=self._seconds,
            timeout=job.config.timeout,
            watch=watch,
            waiting=lambda: job.progress(f"waiting: another run uses {place}", 0.0),
        )
        self.facts = {"place": place, "simulator": result.simulator, "counter": result.counter, "chip": result.chip}
        return result.finished


def _board_counts(run: FirmwareRun, board: _Board) -> dict[str, Any]:
    """Return the content of counts.json for a board, with `ran`: place and counter."""
    rows = [{"total": total, "layers": layers} for total, layers in zip(run.totals, run.counts, strict=True)]
    facts = board.facts
    warnings = []
    if not any(run.totals):
        warnings.append(f"the board's counter did not change: ignore its {facts['counter'] or 'cycles'}")
    if facts["simulator"]:
        counted = f"its {facts['counter']} follow the clock of the host, and are not cycles"
        warnings.append(f"{facts['place']} is {facts['simulator']}, not a board: {counted}")
    if not facts["chip"]:
        warnings.append("the target declares no chip ID: the run may have used another board than intended")
    counts = {"counter": facts["counter"], "inferences": rows, "stack_bytes": run.stack_bytes}
    return {**counts, "warnings": warnings, "ran": facts}


def _counts(run: FirmwareRun, target: Target, layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the content of counts.json."""
    inferences: list[dict[str, Any]] = [
        {"total": total, "layers": of_layers} for total, of_layers in zip(run.totals, run.counts, strict=True)
    ]
    counts: dict[str, Any] = {
        "counter": target.counter,
        "inferences": inferences,
        "stack_bytes": run.stack_bytes if target.counter != "none" else None,
        "warnings": [],
    }
    if target.accelerator is not None:
        from stages.simulate.devices import device_times, entries, timeline, warnings

        log = entries(run.devices)
        for inference, units in zip(inferences, device_times(log, len(layers)), strict=True):
            inference["units"] = units
        counts["timeline"] = timeline(log)
        counts["warnings"] = warnings(log, layers)
    return counts


def simulated(compiled: Path, target: Target) -> Path:
    """Return the firmware for the simulator's machine.

    Raises StageError if it did not fit there.
    """
    if target.simulated is None:
        return compiled / "firmware.elf"
    if (compiled / "not_simulated.txt").exists():
        problem = (compiled / "not_simulated.txt").read_text().rstrip()
        raise StageError(problem, hint="`doit run NAME:compile` builds the firmware for the board")
    return compiled / "simulated.elf"


def describe(inferences: Sequence[Inference], audio: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the content of inputs.json.

    Names, `random` (not from a file), labels or None, and WAV files or None.
    """
    labels = [inference.label for inference in inferences]
    return {
        "names": [inference.name for inference in inferences],
        "random": [inference.random for inference in inferences],
        "labels": labels if any(label is not None for label in labels) else None,
        "audio": audio,
    }


def instruction_limit(configured: int | None, model: Mapping[str, Any]) -> int:
    """Return one inference's limit: configured, or one that correct firmware never reaches."""
    if configured is not None:
        return configured
    return _INSTRUCTIONS_AT_LEAST + _LIMIT_FACTOR * round(expected_instructions(model))


def _blamed(config: SimulateConfig) -> tuple[str, ...]:
    """Return the place of the instruction limit in the recipe, or ()."""
    return () if config.instruction_limit is None else ("stages", "simulate", "instruction_limit")


def expected_instructions(model: Mapping[str, Any]) -> float:
    """Return the expected instructions of the layers in model.json.

    They are tensorize's costs, or estimates by size.
    """
    layers = sum(_by_size(layer) if layer["cost"] is None else layer["cost"] for layer in model["layers"])
    return float(layers + model.get("rows_cost", 0))


def _by_size(layer: Mapping[str, Any]) -> float:
    elements = prod(layer["shape_in"]) + prod(layer["shape_out"])
    return float(_INSTRUCTIONS_PER_MAC * layer["macs"] + _INSTRUCTIONS_PER_ELEMENT * elements)
