"""What a user sees when a compiler or linker refuses, is killed or does not start."""

from pathlib import Path

import pytest

from stages.backends.targets.load import load_target
from stages.backends.targets.runtime import Runtime, runtime_for
from stages.backends.targets.spec import Target
from stages.backends.toolchain.compiler import Source, compile_sources, first_errors, run_command
from stages.base import StageError

RISCV = load_target("rv64-scalar")

# What ld printed, and the lines that matter.
LINKER = [
    (
        ("/usr/lib/ld: a.o: in function `main':\na.c:(.text+0x8): undefined reference to `f'\n"
        "collect2: error: ld returned 1 exit status\n"),
        "a.c:(.text+0x8): undefined reference to `f'",
    ),
    (
        ("a.o: in function `main':\n(.text+0x0): relocation truncated to fit: R_RISCV_HI20 against `x'\n"
        "collect2: error: ld returned 1 exit status\n"),
        "(.text+0x0): relocation truncated to fit: R_RISCV_HI20 against `x'",
    ),
    ("ld: some new complaint\ncollect2: error: ld returned 1 exit status\n", "ld: some new complaint"),
    ("ld terminated with signal 9 [Killed]\n", "ld terminated with signal 9 [Killed]"),
    ("", "it gave no reason"),
    # The first error is whole, others are shortened.
    (f"a.c:1:2: error: #error {'x' * 300} use -march=rv32imc\na.c:2:2: error: {'y' * 300}\n",
        f"a.c:1:2: error: #error {'x' * 300} use -march=rv32imc\na.c:2:2: error: {'y' * 181}..."),
]  # fmt: skip


@pytest.mark.parametrize(("output", "shown"), LINKER)
def test_the_line_that_matters(output: str, shown: str) -> None:
    assert first_errors(output) == shown


def objects(folder: Path, text: str) -> list[Path]:
    (folder / "main.c").write_text(text)
    return compile_sources(
        RISCV,
        runtime_for(RISCV),
        [*map(Source, runtime_for(RISCV).sources), Source(folder / "main.c")],
        folder / "o",
        flags=("-O0",),
    )


def program(folder: Path, text: str) -> str:
    path = folder / "tool"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


KILLED = "another process killed it; the system does so when memory runs out"
UNSTARTED = "tool cannot be started:"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#!/bin/sh\nkill -9 $$\n", f" tool was ended by SIGKILL\n{KILLED}"),
        ("#!/bin/sh\nkill -SEGV $$\n", " tool was ended by SIGSEGV"),
        ("#!/no/interpreter\n", f" {UNSTARTED} the interpreter in its first line, or its loader, is missing"),
        ("\x7fELF garbage", f" {UNSTARTED} it is not a program for this machine"),
        ("#!/bin/sh\nexit 3\n", "\nit gave no reason"),
        ("#!/bin/sh\necho 'gcc: fatal error: Killed signal terminated program cc1' >&2\nexit 1\n",
         f"\ngcc: fatal error: Killed signal terminated program cc1\n{KILLED}"),
    ],
)  # fmt: skip
def test_compiler_that_is_killed_or_cannot_be_started(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StageError) as caught:
        run_command([program(tmp_path, text)], "compiling x")
    assert str(caught.value) == f"compiling x failed:{message}"


def test_environment_that_would_make_gcc_read_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers/probe.h").write_text("")
    monkeypatch.setenv("CPATH", str(tmp_path / "headers"))
    with pytest.raises(StageError, match=r"fatal error: probe\.h: No such file"):
        objects(tmp_path, '#include "probe.h"\n')


BODY = "int f(void)\n{\n    return missing;\n}\n"


def with_folder(folder: Path) -> Target:
    target = load_target("host")
    return target.model_copy(
        update={"kernels": ("acme", *target.kernels), "places": {**target.places, "kernels/acme": folder}}
    )


def test_error_in_a_copy_is_shown_in_the_original(tmp_path: Path) -> None:
    """With its line: the copy has one more, the licence."""
    folder, copies = tmp_path / "net/plugins/kernels/acme", tmp_path / "store/src/kernels/acme"
    for where, first in ((folder, ""), (copies, "/* licence */\n")):
        where.mkdir(parents=True)
        (where / "f.c").write_text(first + BODY)
    with pytest.raises(StageError) as caught:
        compile_sources(with_folder(folder), Runtime(sources=()), [Source(copies / "f.c")], tmp_path / "obj")
    lines = str(caught.value).splitlines()
    assert lines[1].startswith("plugins/kernels/acme/f.c:3:12: error: 'missing' undeclared")
    assert "store" not in str(caught.value)
