"""Finds the kernels of a target: those that the folders of `Target.kernels` declare (stages.kernels.folder).

A folder of `stages/kernels` is a package whose `__init__.py` imports its kernel classes (and not tvm: kernels import it
in `lower`). Nothing else has to be touched to add one.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from stages.base import StageError

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.folder import KernelFolder
    from stages.kernels.kernel import Kernel
    from stages.targets.spec import Target

_SHARED = ("include", "tir")  # folders of stages/kernels that hold no kernels


def folder_names() -> list[str]:
    """Names of the kernel folders there are, sorted."""
    here = Path(__file__).parent
    return sorted(p.parent.name for p in here.glob("*/__init__.py") if p.parent.name not in _SHARED)


def folder(name: str) -> KernelFolder:
    """The record of a folder. Raises StageError for an unknown one."""
    if name not in folder_names() or find_spec(f"stages.kernels.{name}") is None:
        raise StageError(f"there is no kernel folder {name!r}", hint=f"Known: {', '.join(folder_names())}")
    found: KernelFolder = import_module(f"stages.kernels.{name}").FOLDER
    return found


def folders(names: Iterable[str]) -> dict[str, KernelFolder]:
    """The records of folders by name, as `Target.kernels` has them. Raises StageError for an unknown one."""
    return {name: folder(name) for name in names}


def kernels(names: Iterable[str]) -> dict[str, Kernel]:
    """The kernels of the folders `names`, by kernel name, in the folders' order. StageError for an unknown folder."""
    return {cls.name: cls() for declared in folders(names).values() for cls in declared.kernels}


def candidates(view: LayerView, target: Target) -> tuple[list[Kernel], dict[str, str]]:
    """Kernels of the target that can compute the layer, and for the others of the operator the reason why not."""
    able: list[Kernel] = []
    reasons: dict[str, str] = {}
    for name, kernel in kernels(target.kernels).items():
        if view.op.op not in kernel.ops:
            continue
        reason = kernel.why_not(view, target)
        if reason:
            reasons[name] = reason
        else:
            able.append(kernel)
    return able, reasons
