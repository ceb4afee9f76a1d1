"""simulate: runs the firmware on the target's simulator; writes outputs, traces and instruction counts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from stages.backends.hardware.place import check_place
from stages.backends.targets.spec import Target
from stages.base import Job, Stage, StageConfig, StageError, Tool
from stages.ir.models.spec import ModelSource
from stages.support.options.encoding import Encoding
from stages.support.options.strict_model import mistake
from stages.support.system.pathname import Pathname


class InputsConfig(StageConfig):
    """Inputs of the run, in this order: random values, extremes, files.

    `random` is the number of inferences with random values from `seed`, over the full range of the input's type
    (float32: -1 to 1; indices: the range of the tensor that they index).
    `extremes` adds an inference with the minimum everywhere, and one with the maximum.
    `files` are paths or globs relative to the project's root. `**` matches any folder; names that begin with a dot are
    skipped. A .bin has the bytes of one inference (all inputs concatenated). A .npy has a leading axis of inferences;
    float32 is also allowed for quantized inputs. `encoding` is the encoding of the files' numbers, if it differs from
    the network's.
    With state, each of `random` and `extremes` is a sequence of `steps` inferences, and each file is a sequence. The
    state is reset before each sequence.
    `labels` is a .npy with the class of each inference from `files`.
    """

    random: int = Field(default=4, ge=0, le=10_000)
    seed: int = Field(default=1, ge=0)
    extremes: bool = True
    steps: int = Field(default=8, ge=1, le=10_000)
    files: tuple[Pathname, ...] = ()
    encoding: Encoding | None = None
    labels: Pathname | None = None

    @model_validator(mode="after")
    def _check(self) -> InputsConfig:
        if self.encoding is not None and not self.files:
            raise mistake("needs files, and there are none", "encoding")
        return self


class SimulateConfig(StageConfig):
    """Options of the simulate stage.

    `trace` records every layer's output for verify. `timeout` is in seconds, for all inferences.
    `instruction_limit` is for one inference. The error names the source line. The default is a multiple of the
    expected instructions; 0 disables it. It also limits the run, to 10^9 instructions more than all inferences may
    need, and on `host`, which has no counter, by processor time.
    `cycles` estimates the cycles of the first inference in a second run, if the target has a timing model.
    `run_on` is a board at gdb://HOST:PORT instead of a simulator (docs/how-to/hardware.md). Then a layer may take at
    most `stall_seconds`, `timeout` includes transfers, and `instruction_limit` has no effect.
    """

    kind: Literal["simulate"] = "simulate"
    inputs: InputsConfig = InputsConfig()
    trace: bool = True
    timeout: float = Field(default=1800, gt=0, le=10_000_000)
    instruction_limit: int | None = Field(default=None, ge=0)
    cycles: bool = True
    run_on: Annotated[str, AfterValidator(check_place)] | None = None
    stall_seconds: float | None = Field(default=None, gt=0, le=1_000_000)


class SimulateStage(Stage[SimulateConfig]):
    """Stage that runs the firmware on a simulator or a board."""

    kind = "simulate"
    config = SimulateConfig
    consumes = ("emit", "compile")
    sources = ("stages/simulate/__init__.py", "stages/backends/targets/spec.py", "stages/backends/targets/memory.py")
    target_fields = (
        *("name", "family", "compiler", "memory", "simulated", "simulator"),
        *("counter", "board", "accelerator", "timing_model", "flash"),
    )

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

    def target_sources(self, target: Target) -> tuple[str, ...]:
        """Return the patterns of the simulator's code."""
        from stages.backends.simulators.program import code_patterns

        return code_patterns(target)

    def tools(self, config: SimulateConfig, target: Target) -> tuple[Tool, ...]:
        """Return the simulator's tools, or GDB for a board."""
        if config.run_on is not None:
            from stages.backends.hardware.gdb import TOOL

            return (TOOL, Tool("pygdbmi", package="pygdbmi", group="hardware"))
        from stages.backends.simulators.program import simulator_tools
        from stages.backends.timing.disassembly import disassembler

        timed = target.timing_model is not None and config.cycles
        return (*simulator_tools(target), disassembler(target)) if timed else simulator_tools(target)

    def target_code(self, target: Target) -> dict[str, Path]:
        """Return plug-in code of the target's simulator and devices."""
        from stages.backends.targets.places import device_code, plugin_code, simulator_code

        return plugin_code(target) | simulator_code(target) | device_code(target)

    def files(self, config: SimulateConfig, model: ModelSource, root: Path) -> dict[str, Path]:
        """Return the files with inputs and labels."""
        from stages.simulate.inputs import external_files

        return external_files(config.inputs, root)

    def preflight(
        self, config: SimulateConfig, model: ModelSource, target: Target, root: Path, made: Mapping[str, Path]
    ) -> None:
        """Check for accelerators without device model, missing inputs, and files that do not fit the network."""
        if config.run_on is not None and target.memory is None:
            message = f"{target.name} is not a board: its programs run on an operating system"
            raise StageError(message, at=("stages", "simulate", "run_on"))
        if config.run_on is None:
            from stages.backends.simulators.needed import check_devices

            check_devices(target)
        files = self.files(config, model, root)
        if not files and not config.inputs.random and not config.inputs.extremes:
            place = ("stages", "simulate", "inputs")
            raise StageError("there is no input", hint="set random, extremes or files", at=place)
        if not files:
            return
        from stages.ir.models.index_ranges import imported_rules
        from stages.ir.models.local_model import local_model
        from stages.ir.models.spec import is_onnx
        from stages.ir.samples.network import inputs_and_classes
        from stages.simulate.inputs import check_files

        info = local_model(model, root, made)
        rules = imported_rules(made["import"]) if is_onnx(model) and "import" in made else None
        check_files(config.inputs, files, *((None, None) if info is None else inputs_and_classes(info, rules)))

    def run(self, job: Job[SimulateConfig]) -> None:
        """Run the firmware and write its results."""
        from stages.simulate.simulate import simulate

        simulate(job)


STAGE = SimulateStage()
