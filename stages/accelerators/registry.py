"""Finds accelerators: packages of `stages/accelerators` with ACCELERATOR, a class, and FOLDER, where its C is."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stages.accelerators.accelerator import Accelerator
from stages.base import StageError
from stages.messages.wording import did_you_mean

if TYPE_CHECKING:
    from stages.targets.spec import Target


def names() -> list[str]:
    """Names of Firmline's accelerators, sorted."""
    here = Path(__file__).parent
    return sorted(path.parent.name for path in here.glob("*/__init__.py"))


def accelerator_class(name: str, modules: Mapping[str, str] = MappingProxyType({})) -> type[Accelerator[Any]]:
    """The class of an accelerator; `modules` are those of plug-ins (`Target.modules`). Raises StageError."""
    key = f"accelerators/{name}"
    if key not in modules and name not in names():
        hint = f"Known: {', '.join(names()) or 'none'}"
        raise StageError(f"there is no accelerator {name!r}{did_you_mean(name, names())}", hint=hint)
    module = import_module(modules.get(key, f"stages.accelerators.{name}"))
    found = getattr(module, "ACCELERATOR", None)
    if not isinstance(found, type) or not issubclass(found, Accelerator) or found.name != name:
        raise StageError(f"accelerator {name} declares no ACCELERATOR of that name in {module.__file__}")
    return found


def code_patterns_of(target: Target) -> tuple[str, ...]:
    """Globs, relative to Firmline's folder, of the code of the target's accelerator and of the drivers it goes with."""
    if target.accelerator is None:
        return ()
    drivers = ("stages/offload/dma/*.[ch]",)
    name = target.accelerator.kind
    return drivers if name not in names() else (*drivers, f"stages/accelerators/{name}/**/*.*")
