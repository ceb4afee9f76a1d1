"""What is asked of a GDB server before a program runs, by one that answers from a table."""

from collections.abc import Iterator, Mapping
from itertools import count, repeat
from pathlib import Path
from typing import Any, cast

import pytest

from stages.backends.hardware.gdb import Gdb, GdbError
from stages.backends.hardware.run import _halt, _load
from stages.backends.hardware.served import Served
from stages.backends.targets.load import load_target
from stages.base import StageError

PLACE = "gdb://here:1"


class Server:
    """`answers`: what it prints for a command of the console; None is an error, as is what it does not know."""

    def __init__(self, answers: Mapping[str, str | None], pc: Iterator[int] | None = None) -> None:
        self.answers = answers
        self.pc = pc or repeat(8)
        self.asked: list[str] = []

    def command(self, text: str, seconds: float = 0) -> None:
        self.asked.append(text)

    def console(self, text: str, seconds: float = 0) -> str:
        self.asked.append(text)
        answer = self.answers.get(text.removeprefix("monitor "))
        if answer is None:
            raise GdbError("Protocol error with Rcmd")
        return answer

    def value(self, expression: str) -> int:
        return next(self.pc)

    def forget_stops(self) -> None:
        pass

    @property
    def monitored(self) -> list[str]:
        return [text.removeprefix("monitor ") for text in self.asked if text.startswith("monitor ")]


def as_gdb(server: Server) -> Gdb:
    return cast(Gdb, server)


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        # OpenOCD: what is said in later lines is not an answer to the command.
        ({"reset halt": "target halted due to debug-request\nsrst: not found, invalid\n"}, ["reset halt"]),
        # One whose `reset halt` fails: its `reset` lets the program in flash run.
        ({"reset halt": None, "reset": "", "halt": ""}, ["reset halt", "reset", "halt"]),
        ({"reset halt": "Unknown command\n", "reset": "Resetting target\n"}, ["reset halt", "reset", "halt"]),
        ({}, ["reset halt", "reset", "halt"]),
    ],
)
def test_a_reset_that_does_not_halt_is_followed_by_a_halt(answers: dict[str, str | None], asked: list[str]) -> None:
    server = Server(answers)
    _halt(as_gdb(server), PLACE)
    assert server.monitored == asked


def test_a_core_that_runs_on_is_refused() -> None:
    with pytest.raises(StageError, match="the core at gdb://here:1 does not halt, so nothing was loaded\nconnect"):
        _halt(as_gdb(Server({"reset halt": ""}, count(0x1000, 4))), PLACE)


def sections(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr("stages.backends.hardware.run._loaded", lambda elf: list(names))


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("Section .text, range 0x0 -- 0x8: matched.\nSection .data, range 0x8 -- 0x10: matched.\n", ""),
        ("Section .text, range 0x0 -- 0x8: matched.\nSection .data, range 0x8 -- 0x10: MIS-MATCHED!\n", ".data"),
        # One of which nothing was said was not looked at.
        ("Section .text, range 0x0 -- 0x8: matched.\n", ".data"),
        ("", ".text, .data"),
    ],
)
def test_every_section_has_to_be_as_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, wrong: str
) -> None:
    sections(monkeypatch, ".text", ".data")
    (tmp_path / "x.elf").write_bytes(b"")
    server = Server({"compare-sections": said})
    if not wrong:
        _load(as_gdb(server), tmp_path / "x.elf", load_target("cortex-m4"), PLACE)
    else:
        with pytest.raises(StageError, match=rf"at gdb://here:1 differs from the loaded firmware: {wrong}\n"):
            _load(as_gdb(server), tmp_path / "x.elf", load_target("cortex-m4"), PLACE)


class Short(Server):
    """Moves `bytes_moved` bytes out of the target, or none at all, into no file."""

    def __init__(self, folder: Path, bytes_moved: int | None) -> None:
        super().__init__({})
        self.folder = folder
        self.bytes_moved = bytes_moved

    def memory(self, address: int, length: int) -> bytes:
        fields = (4, 1, 0x2000, 8, 0, 1)  # write 8 bytes to the console
        return b"".join(field.to_bytes(4, "little") for field in fields)

    def put(self, address: int, content: bytes) -> None:
        pass

    def console(self, text: str, seconds: float = 0) -> str:
        if self.bytes_moved is not None:
            (self.folder / ".moved.bin").write_bytes(b"x" * self.bytes_moved)
        return ""


@pytest.mark.parametrize(("bytes_moved", "came"), [(8, None), (5, 5), (None, 0)])
def test_bytes_that_do_not_come_through(tmp_path: Path, bytes_moved: int | None, came: int | None) -> None:
    (tmp_path / ".moved.bin").write_bytes(b"earlier.")
    named: dict[str, Any] = {"debugger_request": 0x1000}
    served = Served(as_gdb(Short(tmp_path, bytes_moved)), tmp_path, named, 4)
    if came is None:
        served.serve()
        assert served.printed == "x" * 8
    else:
        with pytest.raises(StageError, match=f"transferred {came} of 8 bytes of the firmware"):
            served.serve()
