"""Check that a target's simulator has the target's accelerator."""

from stages.backends.targets.spec import Target
from stages.support.messages.stage_error import StageError


def check_devices(target: Target) -> None:
    """Raise StageError if the target has an accelerator that its simulator does not have."""
    engine, simulator = target.accelerator, target.simulator.kind
    if engine is None or simulator not in ("spike", "qemu", "native"):
        return
    if simulator != "spike":
        raise StageError(
            f"the accelerator {engine.kind} of target {target.name} needs Spike; its core is simulated on {simulator}",
            hint=f"Use a RISC-V core, or end before the simulation: `doit run NAME:compile target={target.name}`.",
            at=("target",),
        )
    from stages.backends.accelerators.registry import device_folder

    if engine.base is not None and not device_folder(target, engine.kind).is_dir():
        hint = "put its C++ into the folder `device` of the accelerator"
        raise StageError(f"the accelerator {engine.kind} has no device for Spike", hint=hint, at=("target",))
