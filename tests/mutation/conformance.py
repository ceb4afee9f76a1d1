"""Which cases of tests/conformance notice a change of a kernel's file: those of the kernels that use the file."""

import inspect
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from stages.backends.kernels.digest import code_of
from stages.backends.kernels.places import folder_names
from stages.backends.kernels.registry import kernels
from tests.conformance.suite import groups, kernels_of, rank
from tests.conformance.targets import load_target, target_names
from tests.support.emitted import ROOT

_TESTS = "tests/conformance/test_conformance.py"
_TAKEN = "tests/conformance/test_coverage.py::test_a_kernel_takes_some_cases_on_every_target"
_BACKENDS = ROOT / "stages" / "backends"


@cache
def _used() -> dict[str, frozenset[str]]:
    """Files below stages/backends/kernels that each kernel is made of, by its name."""
    found = {}
    for name, kernel in kernels(folder_names()).items():
        files, module = (*kernel.sources, *kernel.headers), Path(inspect.getfile(type(kernel)))
        code = code_of(module, type(kernel).__qualname__, files, include=kernel.folder.include)
        found[name] = frozenset(key.partition(":")[0] for key in code)
    return found


def users(path: Path) -> list[str]:
    """Names of the kernels that use a file, relative to the project's root; where none does, all of its folder."""
    file = path.relative_to(_BACKENDS.relative_to(ROOT)).as_posix()
    return [name for name, files in _used().items() if file in files] or [
        name for name in _used() if name.startswith(f"{Path(file).parent.name}.")
    ]


def arguments(paths: Sequence[Path]) -> tuple[str, ...]:
    """What pytest is given: what ends soonest first, and the layers' meanings only where Python is among the files."""
    names = {name for path in paths for name in users(path)}
    first, second = list(_groups(names, 0)), list(_groups(names, 1))
    cases = [f"test_kernels[{place}]" for place in (*first, *second)]
    taken: list[str] = []
    if any(path.suffix == ".py" for path in paths):
        cases = [f"test_meanings[{place}]" for place in (*first, *second)] + cases
        taken = [f"{_TAKEN}[{name}]" for name in target_names() if any(place.startswith(f"{name}-") for place in first)]
    return (*taken, *(f"{_TESTS}::{case}" for case in cases), "--conformance-kernels", ",".join(sorted(names)))


def _groups(names: set[str], wanted: int) -> Iterator[str]:
    """Where tests/conformance runs these kernels on a target of this rank."""
    for name in target_names():
        target = load_target(name)
        for group in groups(target):
            own = [kernel for operator in group for kernel in kernels_of(target, operator) if kernel.name in names]
            if any(rank(kernel, target) == wanted for kernel in own):
                yield f"{name}-{'+'.join(group)}"
