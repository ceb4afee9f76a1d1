"""Finds the kernels of a target: every concrete `Kernel` in the packages that `Target.kernels` names.

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
from stages.kernels.kernel import Kernel

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.targets.spec import Target

_SHARED = ("include", "tir")  # folders of stages/kernels that hold no kernels


def folders() -> list[str]:
    """Names of the kernel folders there are, sorted."""
    here = Path(__file__).parent
    return sorted(p.parent.name for p in here.glob("*/__init__.py") if p.parent.name not in _SHARED)


def kernels(names: Iterable[str]) -> dict[str, Kernel]:
    """The kernels of the folders `names`, by kernel name, in the folders' order. StageError for an unknown folder."""
    found: dict[str, Kernel] = {}
    for name in names:
        if name not in folders() or find_spec(f"stages.kernels.{name}") is None:
            raise StageError(f"there is no kernel folder {name!r}", hint=f"Known: {', '.join(folders())}")
        module = import_module(f"stages.kernels.{name}")
        classes = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Kernel)]
        for cls in classes:
            if not cls.__abstractmethods__:
                found[cls.name] = cls()
    return found


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
