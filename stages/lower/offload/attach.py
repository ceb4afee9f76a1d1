"""A target's accelerator, and its data for the emitted sources."""

from collections.abc import Iterable
from posixpath import normpath

from pydantic import ValidationError

from stages.backends.accelerators.registry import accelerator_class
from stages.backends.kernels.folder import KernelFolder
from stages.backends.targets.spec import Target
from stages.lower.offload.dma import FOLDER as DMA_FOLDER
from stages.lower.offload.machine import Machine
from stages.lower.offload.program import Attachment
from stages.support.messages.stage_error import StageError
from stages.support.options.wrong_option import first_wrong


def machine_of(target: Target, requantize: str | None = None) -> Machine | None:
    """Return the target's machine, None without an accelerator.

    Raises StageError for unknown parameters and for a value of `requantize` that the accelerator does not support.
    """
    engine = target.accelerator
    if engine is None:
        if requantize is not None:
            at = ("stages", "tensorize", "requantize")
            raise StageError(f"target {target.name} has no accelerator: remove the option requantize", at=at)
        return None
    declared = accelerator_class(engine.kind, target.modules)
    try:
        parameters = declared.parameters.model_validate(engine.parameters)
    except ValidationError as error:
        wrong = first_wrong(error, declared.parameters).message
        raise StageError(f"accelerator {engine.kind} of target {target.name}: parameters: {wrong}") from None
    try:
        accelerator = declared(parameters, requantize or "", target.features)
    except ValueError as error:
        raise StageError(str(error), at=("stages", "tensorize", "requantize")) from None
    return Machine(accelerator, engine.memory, engine.bytes, engine.dma)


def folders_of(target: Target) -> dict[str, KernelFolder]:
    """Return the kernel folders of a target's accelerator by name, empty without one."""
    machine = machine_of(target)
    if machine is None:
        return {}
    return {machine.accelerator.folder.name: machine.accelerator.folder, DMA_FOLDER.name: DMA_FOLDER}


def attachment(machine: Machine, target: Target, resident: Iterable[str]) -> Attachment:
    """Return the accelerator's data for emitted sources: drivers, addresses, buffers."""
    accelerator, engine = machine.accelerator, target.accelerator
    folder = accelerator.folder.name
    driver = "copy.c" if machine.dma is None else "dma.c"
    return Attachment(
        region=machine.memory,
        resident=tuple(resident),
        init=accelerator.init,
        base=0 if engine is None or engine.base is None else engine.base,
        dma_base=None if machine.dma is None else machine.dma.base,
        sources=(*(normpath(f"{folder}/{file}") for file in accelerator.sources), f"{DMA_FOLDER.name}/{driver}"),
        headers=(*(normpath(f"{folder}/{file}") for file in accelerator.headers), f"{DMA_FOLDER.name}/dma.h"),
        assumptions=accelerator.assumptions,
    )
