"""The programs and packages that a target's simulator needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.base import Tool
    from stages.targets.spec import Target


def simulator_tools(target: Target) -> tuple[Tool, ...]:
    """Those that its simulator is, or that build a part of it."""
    if target.simulator.kind == "qemu":
        from stages.simulators.qemu.run import qemu_tools

        return qemu_tools(target)
    if target.simulator.kind == "native":
        return ()
    if target.simulator.kind != "spike":
        from stages.simulators.outside import simulator_of

        return simulator_of(target).tools(target)
    from stages.simulators.spike.build import COMPILER
    from stages.simulators.spike.wheel import TOOLS

    built = target.simulator.plugins or target.accelerator or target.timing_model
    return (*TOOLS, COMPILER) if built else TOOLS
