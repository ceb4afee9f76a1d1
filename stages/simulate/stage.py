"""Stage simulate: run the firmware on the target's simulator.

Writes outputs, traces and instruction counts.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from stages.backends.targets.spec import Target
from stages.base import ActionInputs, Job, Stage, StageError, Tool
from stages.ir.models.sources import ModelSource, networks_of
from stages.ir.models.spec import is_onnx
from stages.ir.operators.table import has_state
from stages.simulate.config import SimulateConfig


class SimulateStage(Stage[SimulateConfig]):
    """Stage that runs the firmware on a simulator or a board."""

    kind = "simulate"
    config = SimulateConfig
    consumes = ("emit", "compile")
    may_consume = ("import",)

    def parameters(self, config: SimulateConfig) -> dict[str, Any]:
        """Return the options; for a board with the time, so that its results are never reused."""
        options = super().parameters(config)
        if config.run_on is None:
            return options
        # A key cannot describe a board. So each plan gets another key.
        return {**options, "moment": datetime.now().astimezone().isoformat(timespec="microseconds")}

    def shared(self, config: SimulateConfig) -> bool:
        """Return False for a board: its results are not uploaded to the remote store."""
        return config.run_on is None

    def inputs(self, config: SimulateConfig, model: ModelSource, target: Target) -> ActionInputs:
        """Return the simulator with devices (for a board GDB), and input and label files."""
        from stages.backends.simulators.program import code_patterns
        from stages.backends.targets.places import device_code, plugin_code, simulator_code
        from stages.ir.samples.wav import model_rate

        rate = model_rate(model)
        return ActionInputs(
            model_entry=None if rate is None else {"sample_rate": rate},
            tools=_tools(config, target),
            files=lambda root: _files(config, root),
            sources=(
                "stages/simulate/stage.py",
                "stages/backends/targets/spec.py",
                "stages/backends/targets/memory.py",
                *code_patterns(target),
            ),
            code=plugin_code(target) | simulator_code(target) | device_code(target),
            target_fields=(
                *("name", "family", "compiler", "memory", "simulated", "simulator"),
                *("counter", "board", "accelerator", "timing_model", "flash"),
            ),
        )

    def preflight(
        self, config: SimulateConfig, model: ModelSource, target: Target, root: Path, artifacts: Mapping[str, Path]
    ) -> None:
        """Check for engines without device model, missing inputs, and files that do not fit."""
        if config.run_on is not None and target.memory is None:
            message = f"{target.name} is not a board: its programs run on an operating system"
            raise StageError(message, at=("stages", "simulate", "run_on"))
        if config.run_on is None:
            from stages.backends.simulators.needed import check_devices

            check_devices(target)
        files = _files(config, root)
        if not files and not config.inputs.random and not config.inputs.extremes:
            place = ("stages", "simulate", "inputs")
            raise StageError("there is no input", hint="set random, extremes or files", at=place)
        if not files:
            return
        from stages.ir.models.index_ranges import imported_rules
        from stages.ir.models.local_model import local_model
        from stages.ir.samples.network import inputs_and_classes
        from stages.ir.samples.wav import model_rate
        from stages.simulate.inputs import check_files

        info, of_onnx = local_model(model, root, artifacts), any(map(is_onnx, networks_of(model)))
        rules = imported_rules(artifacts["import"]) if of_onnx and "import" in artifacts else None
        ports, classes = (None, None) if info is None else inputs_and_classes(info, rules)
        has_step = config.inputs.audio is not None and config.inputs.audio.step is not None
        stateful = has_step and info is not None and has_state(info)
        check_files(config.inputs, files, ports, classes, model_rate(model), stateful=stateful)

    def run(self, job: Job[SimulateConfig]) -> None:
        """Run the firmware and write its results."""
        from stages.simulate.simulate import simulate

        simulate(job)


def _tools(config: SimulateConfig, target: Target) -> tuple[Tool, ...]:
    """Return the simulator's tools, or GDB for a board."""
    if config.run_on is not None:
        from stages.backends.hardware.gdb import TOOL

        return (TOOL, Tool("pygdbmi", package="pygdbmi", group="hardware"))
    from stages.backends.simulators.program import simulator_tools
    from stages.backends.timing.disassembly import disassembler

    timed = target.timing_model is not None and config.cycles
    return (*simulator_tools(target), disassembler(target)) if timed else simulator_tools(target)


def _files(config: SimulateConfig, root: Path) -> dict[str, Path]:
    """Return the files with inputs and labels. Raises StageError for a glob without a match."""
    from stages.simulate.inputs import external_files

    return external_files(config.inputs, root)


STAGE = SimulateStage()
