"""The mutation command: what it changes, what it leaves alone, and that a change no test notices is listed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.suite import groups
from tests.conformance.targets import load_target
from tests.mutation import run
from tests.mutation.c_changes import assembly_changes, c_changes
from tests.mutation.change import Change
from tests.mutation.conformance import arguments, users
from tests.mutation.packages import PACKAGES, Package, changes
from tests.mutation.python_changes import python_changes
from tests.support.emitted import ROOT


@pytest.mark.parametrize(
    ("made", "text", "expected"),
    [
        (python_changes, "x = (a) * (b)", {"x = (a) + (b)"}),
        (python_changes, "x = a <= b < c", {"x = a < b < c", "x = a <= b <= c"}),
        (python_changes, "x = a not in b", {"x = a in b"}),
        (python_changes, "x = not a", {"x = a"}),
        (python_changes, "x = 0x10", {"x = 0x11", "x = 0xf"}),
        (python_changes, "x = min(a)", {"x = max(a)"}),
        (python_changes, "if a:\n    f()", {"if not (a):\n    f()", "if a:\n    pass"}),
        (python_changes, "x += a", {"x -= a", "pass"}),
        (python_changes, "raise E(3)", {"pass"}),
        (python_changes, "def f(a: A | B) -> C | D:\n    return a", set()),
        (c_changes, "    return a + b;\n", {"    return a - b;\n"}),
        (c_changes, "    *y++ = x;\n", {"    ;\n"}),
        (c_changes, "#define SIZE 4\n", {"#define SIZE 5\n", "#define SIZE 3\n"}),
        (c_changes, "    const int8_t *x = y; /* 3 + 4 */\n", set()),
        (assembly_changes, "    add a0, a0, 4\n", {"    add a0, a0, 5\n", "    add a0, a0, 3\n", "    \n"}),
        (assembly_changes, "    .balign 4\nentry:\n", set()),
    ],
)
def test_changes(made: Callable[[str], list[Change]], text: str, expected: set[str]) -> None:
    assert {change.apply(text) for change in made(text)} == expected


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


def test_a_change_that_no_test_notices_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "here"
    project.mkdir()
    (project / "sums.py").write_text("def double(x):\n    return x + x\n\n\ndef unused(x):\n    return x - 1\n")
    (project / "loops.py").write_text("def until(x):\n    while x < 3:\n        x += 1\n    return x\n")
    test = ["from loops import until", "from sums import double", "", "", "def test_all():"]
    test += ["    assert double(3) == 6", "    assert until(0) == 3", ""]
    (project / "test_all.py").write_text("\n".join(test))
    option = "parser.addoption('--all', action='store_true')"
    (project / "conftest.py").write_text(f"def pytest_addoption(parser):\n    {option}\n")
    monkeypatch.setattr(run, "ROOT", project)
    monkeypatch.setattr("tests.mutation.packages.ROOT", project)
    package = Package("all", ("sums.py", "loops.py"), ("test_all.py",))
    copy = run.Copy(tmp_path / "copy")
    copy.check(package, package.paths())
    copy.seconds["all"] = -13.0  # leaves eight seconds to a loop without end
    places = ("sums.py:2", "sums.py:6", "loops.py:3")
    mutants = [next(iter(run.chosen([package], 1, 1, place))) for place in places]
    done = [(mutant, run.run_mutant(copy, mutant)) for mutant in mutants]
    assert [verdict for _, verdict in done] == ["killed", "survived", "timeout"]
    elsewhere = Package("none", ("sums.py",), ("test_none.py",))  # no such test: neither killed nor survived
    mutant = run.Mutant(elsewhere, mutants[0].path, mutants[0].text, mutants[0].change)
    done.append((mutant, run.run_mutant(copy, mutant)))
    text = run.report(done)
    assert "| all | 3 | 1 | 1 | 1 | 0 |" in text and "| none | 1 | 0 | 0 | 0 | 1 |" in text
    assert "error: sums.py:2" in text
    assert "survived: sums.py:6 operator\n-     return x - 1\n+     return x + 1" in text
    assert (copy.root / "sums.py").read_text() == (project / "sums.py").read_text()
