"""The mutation command: what it changes, what it leaves alone, and that a change no test notices is listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.suite import groups
from tests.conformance.targets import load_target
from tests.mutation.conformance import arguments, users
from tests.mutation.packages import PACKAGES, Package, changes
from tests.support.emitted import ROOT


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_package_has_files_to_change_and_tests(package: Package) -> None:
    assert all((ROOT / test).exists() for test in package.tests if "/" in test)
    for pattern in package.files:
        assert list(ROOT.glob(pattern)), pattern
    assert sum(len(changes(path, (ROOT / path).read_text())) for path in package.paths()) > 50


def test_a_kernel_s_file_is_held_by_the_cases_of_the_kernels_that_use_it() -> None:
    assert users(Path("stages/backends/kernels/tir/pooling.py")) == [
        "arm_dsp.pool_rows", "arm_dsp.pool2d", "generic.pool2d", "mve.pool_rows", "mve.pool2d", "neon.pool2d",
        "rvp.average_pool_lines", "rvp.max_pool_lines", "rvp.pool2d",
    ]  # fmt: skip
    assert users(Path("stages/backends/aarch64/kernels/neon_dotprod/hybrid.c")) == ["neon_dotprod.hybrid_4x16"]
    assert "neon_dotprod.hybrid_4x16" in users(Path("stages/backends/aarch64/kernels/neon_dotprod/__init__.py"))
    cases = "tests/conformance/test_conformance.py::test_"
    wide, narrow = (  # the modules of operators whose kernels share a source run as one
        f"{name}-{'+'.join(group)}"
        for name in ("rv64-rvp", "rv32-rvp")
        for group in groups(load_target(name))
        if "add" in group
    )
    native = (f"{cases}kernels[{wide}]", f"{cases}kernels[{narrow}]", "--conformance-kernels", "rvp.add_s8")
    assert arguments([Path("stages/backends/riscv/kernels/rvp/add.c")]) == native
    first = (f"{cases}meanings[{wide}]", f"{cases}meanings[{narrow}]")
    taken = "tests/conformance/test_coverage.py::test_a_kernel_takes_some_cases_on_every_target[rv64-rvp]"
    assert arguments([Path("stages/backends/riscv/kernels/rvp/add.py")]) == (taken, *first, *native)
