"""Devices of Spike beside the core: an accelerator, its memory's DMA engine, the monitor.

An accelerator's device is C++ in the folder `device` of its own; it registers a device of the accelerator's name, which
gets `l1=ORIGIN:LENGTH` and the accelerator's parameters as texts.
"""

from pathlib import Path

from stages.backends.accelerators.registry import device_folder
from stages.backends.riscv.spike.build import devices_library
from stages.backends.targets.attached import DEVICES_LOG, MONITOR, Engine
from stages.backends.targets.memory import Memory, Region
from stages.backends.targets.spec import Device, Target


def attached_devices(target: Target) -> tuple[list[Path], list[Device]]:
    """Return the libraries and devices of a target's accelerator; both empty without one.

    Raises StageError.
    """
    accelerator, memory = target.accelerator, target.memory
    if accelerator is None or memory is None:
        return [], []
    folder = None if accelerator.base is None else device_folder(target, accelerator.kind)
    library = devices_library(accelerator.kind, folder)
    monitor = Device(name="monitor", base=MONITOR, parameters={"log": DEVICES_LOG})
    return [library], [monitor, *_engines(accelerator, memory)]


def _engines(accelerator: Engine, memory: Memory) -> list[Device]:
    devices = []
    if dma := accelerator.dma:
        written = "+".join(_region(region) for region in memory.regions.values() if region.is_written)
        parameters = dma.model_dump(exclude={"base"}) | {"written": written}
        devices.append(Device(name="dma", base=dma.base, parameters=parameters))
    if accelerator.base is not None:
        texts: dict[str, str | int] = {key: str(value) for key, value in accelerator.parameters.items()}
        texts["l1"] = _region(memory.regions[accelerator.memory])
        devices.append(Device(name=accelerator.kind, base=accelerator.base, parameters=texts))
    return devices


def _region(region: Region) -> str:
    return f"{region.origin:#x}:{region.length:#x}"
