"""Find accelerators: packages of `stages/backends/accelerators` with an ACCELERATOR class."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from stages.backends.accelerators.accelerator import Accelerator
from stages.backends.targets.spec import Target
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import did_you_mean

DEVICE = "device"
"""The folder, in an accelerator's, of the C++ that simulates it."""


def names() -> list[str]:
    """Return the names of Firmline's accelerators, sorted."""
    here = Path(__file__).parent
    return sorted(path.parent.name for path in here.glob("*/__init__.py"))


def accelerator_class(name: str, modules: Mapping[str, str] = MappingProxyType({})) -> type[Accelerator[Any]]:
    """Return the class of an accelerator. Raise StageError for an unknown one.

    `modules` are the modules of plug-ins (`Target.modules`).
    """
    key = f"accelerators/{name}"
    if key not in modules and name not in names():
        outside = [place.partition("/")[2] for place in modules if place.startswith("accelerators/")]
        known = sorted({*names(), *outside})
        raise StageError(
            f"there is no accelerator {name!r}{did_you_mean(name, known)}", hint=f"Known: {', '.join(known)}"
        )
    module = import_module(modules.get(key, f"stages.backends.accelerators.{name}"))
    accelerator = getattr(module, "ACCELERATOR", None)
    if not isinstance(accelerator, type) or not issubclass(accelerator, Accelerator) or accelerator.name != name:
        raise StageError(f"accelerator {name} has no ACCELERATOR with that name in {module.__file__}")
    return accelerator


def device_folder(target: Target, kind: str) -> Path:
    """Return the folder with the C++ of an accelerator's device."""
    return target.places.get(f"accelerators/{kind}", Path(__file__).parent / kind) / DEVICE


def code_patterns_of(target: Target) -> tuple[str, ...]:
    """Return globs, relative to Firmline's folder, of the code of the target's accelerator.

    The drivers that it uses are included.

    The device is not among them: only simulators read it.
    """
    if target.accelerator is None:
        return ()
    drivers, name = ("stages/lower/offload/dma/*.[ch]",), target.accelerator.kind
    if name not in names():
        return drivers
    folder = Path(__file__).parent / name
    below = sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name != DEVICE)
    parts = ("", *(f"{subfolder}/**/" for subfolder in below))
    return (*drivers, *(f"stages/backends/accelerators/{name}/{part}*.*" for part in parts))
