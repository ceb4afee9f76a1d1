"""Targets on which kernels are measured as part of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.targets.spec import Target


def why_not_measured(target: Target) -> str:
    """The reason why kernels are not measured on a target, '' where they are."""
    if target.counter == "none":
        return f"target {target.name} counts no instructions"
    if target.accelerator is not None:
        return f"target {target.name} has an accelerator, whose layers are planned by its own model"
    return ""
