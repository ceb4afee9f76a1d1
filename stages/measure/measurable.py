"""Targets on which kernels are measured as part of a run, and what that takes of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.compile import STAGE as COMPILE
from stages.compile.config import CompileConfig
from stages.simulate import STAGE as SIMULATE
from stages.simulate import SimulateConfig

if TYPE_CHECKING:
    from stages.base import Tool
    from stages.targets.spec import Target


def why_not_measured(target: Target) -> str:
    """The reason why kernels are not measured on a target, '' where they are."""
    if target.counter == "none":
        return f"target {target.name} counts no instructions"
    if target.accelerator is not None:
        return f"target {target.name} has an accelerator, whose layers are planned by its own model"
    return ""


def needed_tools(target: Target, *, timed: bool) -> tuple[Tool, ...]:
    """What makes and simulates a firmware, `timed` by a timing model; nothing where none is measured."""
    if why_not_measured(target):
        return ()
    return (*COMPILE.tools(CompileConfig(), target), *SIMULATE.tools(SimulateConfig(cycles=timed), target))
