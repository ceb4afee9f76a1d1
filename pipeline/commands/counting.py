"""Counting kernels outside of a run: the tools and the counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.keys.tools import default_tools
from pipeline.plugins.registry import default_registry
from pipeline.runs.cache import StoreCache
from stages.backends.targets.spec import Target
from stages.base import Tool

if TYPE_CHECKING:
    from pipeline.runs.workspace import Workspace
    from stages.count.counter import Counter


def tools_of(target: Target) -> dict[str, Tool]:
    """Return the tools of the stage `count` by name."""
    return {tool.name: tool for tool in default_tools(default_registry()["count"], target)}


def counter_of(target: Target, workspace: Workspace, progress: Callable[..., None]) -> Counter:
    """Return a counter that counts kernels as the stage `count` does for this target.

    Raises ToolError.
    """
    from stages.count.counter import Counter

    tools = workspace.planner.tools
    versions = {name: tools.identify(tool).version for name, tool in tools_of(target).items()}
    return Counter(target.by_itself, StoreCache(workspace, "bench"), versions, progress=progress)
