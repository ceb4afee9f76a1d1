"""What can be measured: targets with costs, or cycles, of their own, and the tools that the figures depend on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import PipelineError, list_known
from pipeline.keys.groups import install
from pipeline.keys.tools import Tools
from pipeline.plugins.registry import default_registry
from pipeline.project import here
from pipeline.recipes.targets import load_targets, unknown_target
from stages.base import Tool

if TYPE_CHECKING:
    from pipeline.project import Project
    from stages.targets.spec import Target


def _named(name: str, project: Project) -> Target:
    targets = load_targets(project)
    if name not in targets:
        raise unknown_target(name, targets)
    return targets[name]


def timed(name: str, project: Project) -> Target:
    """The core or board of that name. Raises PipelineError for one without a timing model."""
    target = _named(name, project)
    if not target.is_timed:
        known = [one.name for one in load_targets(project).values() if one.is_timed]
        what = f"no timing model is known of {name}"
        if target.accelerator is not None:
            what = f"{name} has an accelerator, whose own model counts cycles"
        raise PipelineError(what, hint=list_known("targets with a timing model", known))
    return target


def measurable(name: str, project: Project) -> Target:
    """The core of that name. Raises PipelineError for what has no costs of its own."""
    target = _named(name, project)
    if target.core != target.name:
        raise PipelineError(f"{target.name} is a board, costs are its core's: doit calibrate target={target.core}")
    if target.counter == "none":
        raise PipelineError(f"target {target.name} counts no instructions, so there is nothing to calibrate by")
    return target


def versions(target: Target, root: Path) -> dict[str, str]:
    """Of what the instruction counts depend on beside the kernels: the compiler, TVM and the simulator."""
    tools = Tools(root / ".firmline" / "tools.json")
    return {name: tools.identify(tool).version for name, tool in tools_of(target).items()}


def tools_of(target: Target) -> dict[str, Tool]:
    """The tools that instruction counts depend on, by name. Whatever the target lacks is installed if possible."""
    registry = default_registry()
    kinds = ("tensorize", "compile", "simulate")
    wanted = [tool for kind in kinds for tool in registry[kind].tools(registry[kind].config(), target)]
    tools = Tools(here().root / ".firmline" / "tools.json", install)
    tools.install_missing(wanted)
    names = ("tvm", "compiler", "spike", target.simulator.command)
    counted = {tool.name: tool for tool in wanted if tool.name in names}
    for tool in counted.values():
        tools.identify(tool)
    return counted
