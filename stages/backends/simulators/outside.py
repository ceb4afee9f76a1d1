"""The interface of a plug-in's simulator: object SIMULATOR in a module that targets name."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Protocol

from stages.backends.simulators.process import Finished
from stages.backends.targets.spec import Target
from stages.support.messages.stage_error import StageError
from stages.support.tool import Tool


class SimulatorPlugin(Protocol):
    """A simulator that runs an ELF file, as `simulators.program.run_program` does."""

    def tools(self, target: Target) -> tuple[Tool, ...]:
        """Return the programs and packages that `run` needs. Their versions are in the key."""

    def run(
        self,
        elf: Path,
        target: Target,
        folder: Path,
        *,
        timeout: float,
        most_instructions: int,
        watch: Callable[[], None],
    ) -> Finished:
        """Run `elf` with `folder` as current directory. `run_program` describes limits and errors."""


def simulator_of(target: Target) -> SimulatorPlugin:
    """Return the plug-in that simulates a target. Raises StageError for an unknown kind."""
    module = target.modules.get(f"simulators/{target.simulator.kind}")
    if module is None:
        raise StageError(f"target {target.name}: no simulator '{target.simulator.kind}'", at=("target",))
    plugin: SimulatorPlugin = import_module(module).SIMULATOR
    return plugin
