"""Names and paths of the kernel folders, without importing them."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_BACKENDS = Path(__file__).resolve().parents[1]
_CODE = (".py", ".c", ".h", ".S")
# A file of another folder, as C includes it and as kernels name their sources: "../neon/windows.c"; or all of its
# headers, as records name them: "../generic".
_BESIDE = re.compile(rb'"\.\./(\w+)["/]')
_FOLDERS = "*/kernels/*/__init__.py"  # below stages/backends


def folder_names() -> list[str]:
    """Return the names of all kernel folders, sorted."""
    return sorted(_families())


def module_of(name: str) -> str:
    """Return the package of a kernel folder: `stages.backends.riscv.kernels.rvp`."""
    return f"stages.backends.{_families()[name]}.kernels.{name}"


def path_of(name: str) -> Path:
    """Return the path of a kernel folder."""
    return _BACKENDS / _families()[name] / "kernels" / name


@cache
def _families() -> dict[str, str]:
    """Return the architecture family of each kernel folder, by the folder's name."""
    return {path.parent.name: path.parents[2].name for path in _BACKENDS.glob(_FOLDERS)}


def include_path(folder: Path, name: str) -> Path:
    """Return the header folder that the record of `folder` names; `../generic`: of any family."""
    other = name.removeprefix("../")
    return path_of(other) if other in _families() else folder / name


def kernel_file(folder: Path, name: str) -> Path:
    """Return the path of a kernel's file: `gemm.c` of its folder, or `../generic/windows.c`."""
    other, _, file = name.rpartition("/")
    return (include_path(folder, other) if other else folder) / file


def code_patterns(names: Iterable[str]) -> tuple[str, ...]:
    """Return globs, relative to Firmline's folder, of the code of the folders `names`.

    Folders whose files they use are included.
    """
    waiting, visited = list(names), []
    while waiting:
        name = waiting.pop(0)
        if name in visited or name not in _families():  # loading it reports the unknown name
            continue
        visited.append(name)
        for path in sorted(path_of(name).iterdir()):
            if path.suffix in _CODE:
                waiting += (beside.decode() for beside in _BESIDE.findall(path.read_bytes()))
    folders = tuple(
        f"stages/backends/{_families()[name]}/kernels/{name}/**/*.{kind}"
        for name in visited
        for kind in ("py", "[chS]")
    )
    return ("stages/backends/kernels/include/*.h", *folders, *(p for name in visited for p in _instruction_sets(name)))


def _instruction_sets(name: str) -> tuple[str, ...]:
    """Return globs of a kernel folder's declared instruction sets, with their code.

    A declaration has the name of the folder.
    """
    folder = f"{_families()[name]}/instructions"
    if not any((_BACKENDS / folder).glob(f"{name}-*.yaml")):
        return ()
    return (f"stages/backends/{folder}/{name}-*.yaml", f"stages/backends/{folder}/*.py")


def cost_patterns(family: str) -> tuple[str, ...]:
    """Return the glob of a family's `generic_costs.py`, which few families have."""
    name = "generic_costs.py"
    return (f"stages/backends/{family}/{name}",) if (_BACKENDS / family / name).is_file() else ()
