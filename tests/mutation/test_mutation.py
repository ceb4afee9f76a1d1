"""The mutation command: what it changes, what it leaves alone, and that a change no test notices is listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.suite import groups
from tests.conformance.targets import load_target
from tests.mutation import run
from tests.mutation.c_changes import assembly_changes, c_changes
from tests.mutation.change import Change
from tests.mutation.conformance import arguments, users
from tests.mutation.python_changes import python_changes
from tests.mutation.rooms import ROOMS, Room, changes
from tests.support.emitted import ROOT


def results(text: str, made: list[Change]) -> set[str]:
    return {change.apply(text) for change in made}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = a + b", {"x = a - b"}),
        ("x = (a) * (b)", {"x = (a) + (b)"}),
        ("x = a << b", {"x = a >> b"}),
        ("x = a <= b < c", {"x = a < b < c", "x = a <= b <= c"}),
        ("x = a not in b", {"x = a in b"}),
        ("x = a and b and c", {"x = a or b and c", "x = a and b or c"}),
        ("x = not a", {"x = a"}),
        ("x = -a", {"x = a"}),
        ("x = 7", {"x = 8", "x = 6"}),
        ("x = 0x10", {"x = 0x11", "x = 0xf"}),
        ("x = True", {"x = False"}),
        ("x = min(a)", {"x = max(a)"}),
        ("if a:\n    f()", {"if not (a):\n    f()", "if a:\n    pass"}),
        ("x += a", {"x -= a", "pass"}),
        ("raise E(3)", {"pass"}),
        ("é = 'ä' + b", {"é = 'ä' - b"}),
        ('"""Words."""\nx: "A | B" = a', set()),
        ("def f(a: A | B) -> C | D:\n    return a", set()),
        ("x = f'{a + 1}'", set()),
        ("if TYPE_CHECKING:\n    import a", set()),
    ],
)
def test_changes_of_python(text: str, expected: set[str]) -> None:
    assert results(text, python_changes(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    return a + b;\n", {"    return a - b;\n"}),
        ("    x = f(a);\n", {"    ;\n"}),
        ("    f(a);\n", {"    ;\n"}),
        ("    *y++ = x;\n", {"    ;\n"}),
        ("    int32_t x = a >> b;\n", {"    int32_t x = a << b;\n"}),
        ("    const int8_t *x = y; /* 3 + 4 */\n", set()),
        ("#define SIZE 4\n", {"#define SIZE 5\n", "#define SIZE 3\n"}),
        ('#include "x4.h"\n', set()),
        ("    if (a <= INT8_MAX) {\n", {"    if (a < INT8_MAX) {\n"}),
        ("    return 0x80u;\n", {"    return 0x81u;\n", "    return 0x7fu;\n"}),
    ],
)
def test_changes_of_c(text: str, expected: set[str]) -> None:
    assert results(text, c_changes(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    add a0, a0, 4\n", {"    add a0, a0, 5\n", "    add a0, a0, 3\n", "    \n"}),
        ("    \\how r0, q1\n", {"    \n"}),
        ("    .balign 4\nentry:\n", set()),
        ("    .if pairs > 1\n", {"    .if pairs >= 1\n", "    .if pairs > 2\n", "    .if pairs > 0\n"}),
        ("    ret  /* 3 */\n", {"      /* 3 */\n"}),
    ],
)
def test_changes_of_assembly(text: str, expected: set[str]) -> None:
    assert results(text, assembly_changes(text)) == expected


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_every_room_has_files_to_change_and_tests(room: Room) -> None:
    assert all((ROOT / test).exists() for test in room.tests if "/" in test)
    for pattern in room.files:
        assert list(ROOT.glob(pattern)), pattern
    assert sum(len(changes(path, (ROOT / path).read_text())) for path in room.paths()) > 50


def test_a_kernel_s_file_is_held_by_the_cases_of_the_kernels_that_use_it() -> None:
    assert users(Path("stages/kernels/tir/pooling.py")) == [
        "arm_dsp.pool_rows", "arm_dsp.pool2d", "generic.pool2d", "mve.pool_rows", "mve.pool2d", "neon.pool2d",
        "rvp.average_pool_lines", "rvp.max_pool_lines", "rvp.pool2d",
    ]  # fmt: skip
    assert users(Path("stages/kernels/neon_dotprod/hybrid.c")) == ["neon_dotprod.hybrid_4x16"]
    assert "neon_dotprod.hybrid_4x16" in users(Path("stages/kernels/neon_dotprod/__init__.py"))
    cases = "tests/conformance/test_conformance.py::test_"
    wide, narrow = (  # the modules of operators whose kernels share a source run as one
        f"{name}-{'+'.join(group)}"
        for name in ("rv64-rvp", "rv32-rvp")
        for group in groups(load_target(name))
        if "add" in group
    )
    native = (f"{cases}kernels[{wide}]", f"{cases}kernels[{narrow}]", "--conformance-kernels", "rvp.add_s8")
    assert arguments([Path("stages/kernels/rvp/add.c")]) == native
    first = (f"{cases}meanings[{wide}]", f"{cases}meanings[{narrow}]")
    taken = "tests/conformance/test_coverage.py::test_a_kernel_takes_some_cases_on_every_target[rv64-rvp]"
    assert arguments([Path("stages/kernels/rvp/add.py")]) == (taken, *first, *native)


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
    monkeypatch.setattr("tests.mutation.rooms.ROOT", project)
    room = Room("all", ("sums.py", "loops.py"), ("test_all.py",))
    copy = run.Copy(tmp_path / "copy")
    copy.check(room, room.paths())
    copy.seconds["all"] = -13.0  # leaves eight seconds to a loop without end
    places = ("sums.py:2", "sums.py:6", "loops.py:3")
    mutants = [next(iter(run.chosen([room], 1, 1, place))) for place in places]
    done = [(mutant, run.run_mutant(copy, mutant)) for mutant in mutants]
    assert [verdict for _, verdict in done] == ["killed", "survived", "timeout"]
    elsewhere = Room("none", ("sums.py",), ("test_none.py",))  # no such test: neither killed nor survived
    mutant = run.Mutant(elsewhere, mutants[0].path, mutants[0].text, mutants[0].change)
    done.append((mutant, run.run_mutant(copy, mutant)))
    text = run.report(done)
    assert "| all | 3 | 1 | 1 | 1 | 0 |" in text and "| none | 1 | 0 | 0 | 0 | 1 |" in text
    assert "error: sums.py:2" in text
    assert "survived: sums.py:6 operator\n-     return x - 1\n+     return x + 1" in text
    assert (copy.root / "sums.py").read_text() == (project / "sums.py").read_text()
