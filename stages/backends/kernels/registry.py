"""Find the kernels of a target: those in the folders of `Target.kernels`.

A folder `stages/backends/<family>/kernels/<name>` is a package whose `__init__.py` imports its kernel classes, but not
tvm: kernels take it from `stages.support.lazy`. A new folder needs no other change.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType

from stages.backends.kernels.folder import KernelFolder
from stages.backends.kernels.kernel import Kernel, RowSumKernel
from stages.backends.kernels.places import folder_names, module_of
from stages.backends.targets.spec import Target
from stages.ir.graph.kinds import is_kernel_kind, kernel_kinds
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import did_you_mean


def folder(name: str, modules: Mapping[str, str] = MappingProxyType({})) -> KernelFolder:
    """Return the record of a folder. Raise StageError for an unknown folder.

    `modules` are the modules of plug-ins (`Target.modules`).
    """
    if f"kernels/{name}" in modules:
        return _checked(name, import_module(modules[f"kernels/{name}"]))
    if name not in folder_names():
        raise StageError(f"there is no kernel folder {name!r}", hint=f"Known: {', '.join(folder_names())}")
    record: KernelFolder = import_module(module_of(name)).FOLDER
    return record


def _checked(name: str, module: ModuleType) -> KernelFolder:
    """Return the record of a plug-in's folder. Raise StageError if its name does not match."""
    record: KernelFolder | None = getattr(module, "FOLDER", None)
    if record is None:
        raise StageError(f"kernel folder {name} has no FOLDER in {module.__file__}")
    wrong = [cls.name for cls in record.kernels if not cls.name.startswith(f"{name}.")]
    if record.name != name or wrong:
        reason = f"its folder is {record.name}" if record.name != name else f"its kernel is called {wrong[0]}"
        raise StageError(f"kernel folder {name}: {reason}", hint=f"folder and kernels are called {name} and {name}.*")
    if not record.kernels:
        raise StageError(f"kernel folder {name} has no kernels", hint=f"kernels= of its FOLDER, in {module.__file__}")
    for cls in record.kernels:
        for kind in sorted(cls.ops):
            if not is_kernel_kind(kind):
                guess = did_you_mean(kind, kernel_kinds())
                raise StageError(f"kernel {cls.name} lists the unknown operator '{kind}'{guess}")
    return record


def folders(names: Iterable[str]) -> dict[str, KernelFolder]:
    """Return the records of Firmline's folders by name. Raise StageError for an unknown folder."""
    return {name: folder(name) for name in names}


def folders_of(target: Target) -> dict[str, KernelFolder]:
    """Return the records of the target's folders by name.

    Raise StageError for an unknown folder.
    """
    return {name: folder(name, target.modules).on(target) for name in target.kernels}


def kernels(names: Iterable[str]) -> dict[str, Kernel]:
    """Return the kernels of Firmline's folders `names`, by kernel name, in that order.

    Raise StageError for an unknown folder.
    """
    return _by_name(folders(names).values())


def kernels_of(target: Target) -> dict[str, Kernel]:
    """Return the target's kernels by kernel name, in the order of its folders.

    Raise StageError for an unknown folder.
    """
    return _by_name(folders_of(target).values())


def row_sum_kernels(target: Target) -> list[RowSumKernel]:
    """Return the target's kernels for layers that add up rows, in the order of its folders."""
    return [cls() for record in folders_of(target).values() for cls in record.sums]


def _by_name(declared: Iterable[KernelFolder]) -> dict[str, Kernel]:
    return {cls.name: cls() for record in declared for cls in record.kernels}
