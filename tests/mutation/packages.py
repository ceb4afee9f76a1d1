"""The packages of the project that are mutated, and which tests must notice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutation import conformance
from tests.mutation.c_changes import assembly_changes, c_changes
from tests.mutation.change import Change
from tests.mutation.python_changes import python_changes
from tests.support.emitted import ROOT

_CHANGES: dict[str, Callable[[str], list[Change]]] = {
    ".py": python_changes, ".c": c_changes, ".h": c_changes, ".S": assembly_changes
}  # fmt: skip


@dataclass(frozen=True)
class Package:
    """A part of the project: its files as globs, and paths of tests that concern them.

    With `conformance` it holds kernels: the cases of those that use a changed file run after the tests.
    """

    name: str
    files: tuple[str, ...]
    tests: tuple[str, ...] = ()
    conformance: bool = False

    def paths(self) -> list[Path]:
        """Its files, relative to the project's root, sorted."""
        return sorted(
            path.relative_to(ROOT)
            for pattern in self.files
            for path in ROOT.glob(pattern)
            if path.suffix in _CHANGES and path.name != "__init__.py"
        )

    def arguments(self, paths: Sequence[Path]) -> tuple[str, ...]:
        """What pytest is given for changes of these files, quickest first."""
        return (*self.tests, *(conformance.arguments(paths) if self.conformance else ()))


def changes(path: Path, text: str) -> list[Change]:
    """Every change of a file of the project, which has this text."""
    return _CHANGES[path.suffix](text)


def _family(name: str, *tests: str) -> Package:
    """A folder of kernels."""
    return Package(f"kernels/{name}", (f"stages/backends/**/kernels/{name}/*",), tests, conformance=True)


_NETWORKS = "tests/firmware/test_drawn_operators.py"
_LAYOUTS = ("tests/unit/quantize/test_operators.py", "tests/unit/tensorize/test_layouts.py", _NETWORKS)
PACKAGES = (
    # The quickest first: most changes end there.
    Package(
        "quantize",
        ("stages/quantize/**/*.py",),
        ("tests/unit/quantize/test_rounding.py", "tests/unit/quantize", "tests/tflm"),
    ),
    Package("layout", ("stages/layout/*.py",), ("tests/unit/layout", *_LAYOUTS)),
    Package("export", ("stages/delivery/export/**/*.py",), ("tests/unit/export",)),
    Package("ptq", ("stages/ptq/*.py",), ("tests/unit/ptq",)),
    Package("arena", ("stages/lower/arena/*.py",), ("tests/unit/arena", _NETWORKS)),
    Package(
        "store",
        (
            "pipeline/artifacts/store.py",
            "pipeline/artifacts/digest.py",
            "pipeline/artifacts/last_runs.py",
            "pipeline/artifacts/folders.py",
            "stages/support/system/atomic_write.py",
        ),
        ("tests/unit/pipeline/artifacts", "tests/unit/system/test_atomic_write.py"),
    ),
    Package("codegen", ("stages/lower/codegen/*.py",), ("tests/unit/codegen", "tests/golden")),
    Package("tensorize", ("stages/tensorize/*.py",), ("tests/unit/tensorize", _NETWORKS)),
    Package(
        "operators",
        ("stages/ir/operators/*.py", "stages/ir/arithmetic/*.py"),
        (
            "tests/unit/operators",
            "tests/unit/reference",
            "tests/unit/quantize",
            "tests/unit/import_model",
            "tests/tflm",
        ),
    ),
    _family("tir"),
    _family("generic", "tests/unit/kernels/test_generic_kernels.py"),
    _family("rvp", "tests/unit/kernels/test_rvp_one_rounding.py"),
    _family("riscv"),
    _family("arm_dsp"),
    _family("mve", "tests/unit/kernels/test_mve_lanes.py"),
    _family("neon"),
    _family("neon_dotprod"),
    _family("neon_i8mm"),
    _family("include"),
)
