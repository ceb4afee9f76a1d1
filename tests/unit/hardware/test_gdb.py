"""GDB's machine interface, by a program in its place that prints what it is told to."""

import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stages.backends.hardware import gdb as module
from stages.backends.hardware.gdb import Gdb, GdbClosed, GdbError, GdbSilent
from stages.backends.hardware.run import _answering, _monitored
from stages.base import StageError
from tests.support.optional import needs

pytestmark = needs("pygdbmi", "hardware")

# Answers `^done` to all commands but those of the console, which it does instead: `flood` prints a line without an end.
_GDB = """\
import re, sys, time
for line in sys.stdin:
    token, command = re.match(r"(\\d*)(.*)", line).groups()
    words = re.search('console "(?:monitor )?(.*)"', command)
    if words:
        exec(words[1])
    elif command == "-exec-continue":
        print(f"{token}^running", flush=True)
        while True:
            print('@"noise"')
    print(f"{token}^done\\n(gdb) ", flush=True)
"""
SAYS = "print(chr(126)+chr(34)+'said'+chr(34)"


@contextmanager
def started(folder: Path) -> Iterator[Gdb]:
    program = folder / "gdb"
    program.write_text(f"#!{sys.executable}\n{_GDB}")
    program.chmod(0o755)
    gdb = Gdb(str(program), folder, folder / "x.elf")
    try:
        yield gdb
    finally:
        gdb.close()


def test_what_a_command_prints(tmp_path: Path) -> None:
    with started(tmp_path) as gdb:
        assert gdb.console("pass") == ""
        assert gdb.console("[sys.stdout.write(chr(64)+chr(34)+'x'+chr(34)+chr(10)) for _ in range(5000)]") == "x" * 5000
        assert gdb.console("pass") == ""
        with pytest.raises(GdbError, match="GDB has ended"):
            gdb.console("sys.exit()")


@pytest.mark.parametrize(
    "words",
    [
        "while 1: sys.stdout.write(chr(64)+chr(34)+'y'*50+chr(34)+chr(10))",
        "while 1: sys.stdout.write('y'*50)",
        "while 1: sys.stdout.write('+download,{}'+chr(10))",
        "while 1: sys.stdout.write('1^done'+chr(10))",
        "while 1: sys.stdout.write(chr(10))",
    ],
    ids=["lines", "one line", "progress", "results", "empty lines"],
)
def test_a_server_that_prints_without_an_end(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as `monitor reset halt` of one that logs each access."""
    monkeypatch.setattr(module, "MOST_PRINTED", 1 << 18)
    monkeypatch.setattr(module, "_MOST_LINE", 1 << 16)
    with started(tmp_path) as gdb:
        tracemalloc.start()
        try:
            with pytest.raises(StageError, match="gdb://here:1 prints without an end"), _answering("gdb://here:1"):
                _monitored(gdb, words)
            assert tracemalloc.get_traced_memory()[1] < 32 << 20
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("pause", [0.02, 60.0])
def test_a_server_that_prints_now_and_then(pause: float, tmp_path: Path) -> None:
    """Bytes are no answer: the time of a command is its own, and no longer than what is left of all."""
    with started(tmp_path) as gdb:
        words = f"while 1: {SAYS}, flush=True); time.sleep({pause})"
        with pytest.raises(GdbSilent):
            gdb.console(words, 0.3)
        gdb.deadline = 0.0
        with pytest.raises(GdbSilent):
            gdb.console("pass", 60)


def test_a_connection_that_is_closed_is_reported_by_the_reason(tmp_path: Path) -> None:
    with started(tmp_path) as gdb, pytest.raises(GdbClosed):
        gdb.console("print(token + '^error,msg=' + chr(34) + 'Remote connection closed' + chr(34), flush=True)")
