"""Host side of harness/debugger.c: files for a program that stops at each request."""

from pathlib import Path
from typing import BinaryIO

from stages.backends.hardware.gdb import BYTES_PER_SECOND, PATIENCE, Gdb
from stages.support.messages.stage_error import StageError

STOP = "debugger_stop"
_REQUEST = "debugger_request"
# As debugger.c has them: the operations, and the words of a request.
_OPEN_READ, _OPEN_WRITE, _READ, _WRITE, _CLOSE, _EXIT = range(1, 7)
_REQUESTED = ("operation", "file", "address", "bytes", "result", "counter")
_CONSOLE = 1
_FIRST_FILE = 3
_MOVED = ".moved.bin"
_LONGEST_NAME = 64
# Bytes that a program moves at a time, and that it leaves in all: more is a damaged memory, or has no end.
_MOST_MOVED, _MOST_WRITTEN = 256 << 20, 1 << 30


def symbols(elf: Path) -> dict[str, int]:
    """Return addresses by name.

    Raises StageError for a program that was not compiled for a debugger.
    """
    from elftools.elf.elffile import ELFFile

    with elf.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        addresses = {} if table is None else {symbol.name: symbol["st_value"] for symbol in table.iter_symbols()}  # type: ignore[attr-defined]
    if STOP not in addresses:
        raise StageError(
            "the firmware was compiled for a simulator, not for a debugger",
            hint="run_on=gdb://HOST:PORT on the command line compiles it for one",
        )
    return addresses


class Served:
    """Answer the requests of one program, with files in its folder.

    `exit_code` is None until it ends; `counter` is the number of its counter (COUNTERS of the family).
    """

    def __init__(self, gdb: Gdb, folder: Path, named: dict[str, int], word_bytes: int) -> None:
        self.exit_code: int | None = None
        self.counter = 0
        self._gdb = gdb
        self._folder = folder
        self._request = named[_REQUEST]
        self._word = word_bytes
        self._files: dict[int, BinaryIO] = {}
        self._said = bytearray()
        self._written = 0

    @property
    def printed(self) -> str:
        """Output of the program's console."""
        return self._said.decode(errors="replace")

    def serve(self) -> None:
        """Answer the request that the program stopped for.

        Raises GdbError, GdbClosed, GdbSilent, StageError.
        """
        raw = self._gdb.memory(self._request, len(_REQUESTED) * self._word)
        operation, number, address, count, _, self.counter = (
            int.from_bytes(raw[at : at + self._word], "little") for at in range(0, len(raw), self._word)
        )
        if operation == _EXIT:
            self.exit_code = number
            self._close_all()
            return
        if operation in (_OPEN_READ, _OPEN_WRITE):
            result = self._open(address, count, writes=operation == _OPEN_WRITE)
        elif operation == _READ:
            result = self._read(number, address, count)
        elif operation == _WRITE:
            result = self._write(number, address, count)
        elif operation == _CLOSE and number in self._files:
            self._files.pop(number).close()
            result = 0
        else:
            raise StageError(f"the firmware sent the unknown request {operation:#x} to its host: its memory is damaged")
        self._gdb.put(
            self._request + _REQUESTED.index("result") * self._word, result.to_bytes(self._word, "little", signed=True)
        )

    def _open(self, address: int, count: int, *, writes: bool) -> int:
        name = self._gdb.memory(address, min(count, _LONGEST_NAME)).decode(errors="replace")
        # The harness's files have plain names; anything else is a damaged memory.
        if Path(name).name != name or name.startswith("."):
            return -1
        try:
            opened = (self._folder / name).open("wb" if writes else "rb")
        except OSError:
            return -1
        number = max(self._files, default=_FIRST_FILE - 1) + 1
        self._files[number] = opened
        return number

    def _read(self, number: int, address: int, count: int) -> int:
        """Copy bytes from the host into the target's memory."""
        if number not in self._files:
            return -1
        content = self._files[number].read(min(count, _MOST_MOVED))
        if len(content) != count:
            return -1
        (self._folder / _MOVED).write_bytes(content)
        self._gdb.console(f"restore {_MOVED} binary {address:#x}", PATIENCE + count / BYTES_PER_SECOND)
        return 0

    def _write(self, number: int, address: int, count: int) -> int:
        """Copy the target's bytes into the host's file."""
        if number not in self._files and number != _CONSOLE:
            return -1
        self._written += count
        if count > _MOST_MOVED or self._written > _MOST_WRITTEN:
            message = f"the firmware writes {count:,} bytes, after {self._written - count:,} bytes"
            raise StageError(message, hint="its memory is damaged, or its output is endless")
        moved = self._folder / _MOVED
        moved.unlink(missing_ok=True)
        self._gdb.console(
            f"dump binary memory {_MOVED} {address:#x} {address + count:#x}", PATIENCE + count / BYTES_PER_SECOND
        )
        content = moved.read_bytes() if moved.exists() else b""
        if len(content) != count:
            raise StageError(f"the GDB server transferred {len(content):,} of {count:,} bytes of the firmware")
        if number == _CONSOLE:
            self._said += content
        else:
            self._files[number].write(content)
            self._files[number].flush()
        return 0

    def _close_all(self) -> None:
        for opened in self._files.values():
            opened.close()
        self._files.clear()
