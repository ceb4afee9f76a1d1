"""An object is another test's where all that it is made of is equal, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from stages.support.system.programs import run_tool
from tests.support.compiled_once import compiled_once


class Gcc:
    """Calls of the host's compiler, and how many of them compiled."""

    def __init__(self, folder: Path) -> None:
        self.compiled, self.folder = 0, folder
        (folder / "kept").mkdir()
        self.run = compiled_once(self.counted, folder / "kept")

    def counted(self, arguments: Sequence[str], **options: Any) -> CompletedProcess[str]:
        self.compiled += "-c" in arguments
        return run_tool(arguments, **options)

    def __call__(self, place: str, source: str, *flags: str, header: str = "", name: str = "one.c") -> bytes:
        there = self.folder / place
        there.mkdir(exist_ok=True)
        (there / name).write_text(source)
        (there / "one.h").write_text(header)
        made = there / "one.o"
        done = self.run(["gcc", *flags, f"-I{there}", "-c", str(there / name), "-o", str(made)], cwd=there)
        assert done.returncode == 0, done.stderr
        return made.read_bytes()


@pytest.fixture
def gcc(tmp_path: Path) -> Gcc:
    return Gcc(tmp_path)


SOURCE = '#include "one.h"\nint one(void) { return VALUE; }\n'
HEADER = "#define VALUE 1\n"


def test_an_equal_source_elsewhere_is_not_compiled_again(gcc: Gcc) -> None:
    first = gcc("a", SOURCE, "-O2", header=HEADER)
    assert gcc("b", SOURCE, "-O2", header=HEADER) == first
    assert gcc("c", SOURCE, "-O2", "-DNOBODY=1", header=HEADER) == first
    assert gcc.compiled == 1


def test_another_header_macro_option_or_kind_of_file_is_another_object(gcc: Gcc) -> None:
    gcc("a", SOURCE, "-O2", header=HEADER)
    gcc("b", SOURCE, "-O2", header="#define VALUE 2\n")
    gcc("c", SOURCE, "-O2", "-DVALUE=3")
    gcc("d", SOURCE, "-O1", header=HEADER)
    gcc("e", ".globl one\none:\n", "-O2", name="one.S")
    assert gcc.compiled == 5


def test_what_the_assembler_reads_is_read_each_time(gcc: Gcc) -> None:
    (gcc.folder / "data.bin").write_bytes(b"before")
    source = f'__asm__(".incbin \\"{gcc.folder}/data.bin\\"");\n'
    assert b"before" in gcc("a", source)
    (gcc.folder / "data.bin").write_bytes(b"behind")
    assert b"behind" in gcc("a", source)
