"""Run a firmware on a board: check the chip, load and verify, serve requests.

The program stops when it needs its host (stages/backends/harness/debugger.c), so neither semihosting nor a serial line
is needed. Its files are in a folder, as with a simulator.
"""

import contextlib
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from stages.backends.hardware.chip import check_chip
from stages.backends.hardware.gdb import (
    BYTES_PER_SECOND,
    MOST_PRINTED,
    PATIENCE,
    Gdb,
    GdbClosed,
    GdbError,
    GdbFlood,
    GdbSilent,
)
from stages.backends.hardware.place import address
from stages.backends.hardware.served import STOP, Served, symbols
from stages.backends.hardware.taken import taken
from stages.backends.simulators.process import Finished
from stages.backends.simulators.symbols import place as source_place
from stages.backends.targets.runtime import family_of
from stages.backends.targets.spec import Target
from stages.support.messages.stage_error import StageError

_UNKNOWN = re.compile(r"unknown|invalid|unrecogni[sz]ed|not supported|not found", re.IGNORECASE)
_LONGER = "set=stages.simulate.{}=N gives it longer {}"
_ANOTHER_CORE = re.compile(r"architecture (\S+) is not compatible with reported target architecture (\S+)")
_FAULT = 99  # of fault.c and trap.c
# What QEMU's server alone answers to.
_QEMUS_PACKET = "qqemu.sstepbits"


@dataclass(frozen=True)
class Ran:
    """Result of a program on a board.

    finished   exit code and output
    counter    unit of its counts, such as `cycles by DWT`
    chip       identification that the chip reported
    simulator  `QEMU` if QEMU answered instead of a board, else ''
    """

    finished: Finished
    counter: str
    chip: list[str]
    simulator: str


def run_on_board(
    elf: Path,
    target: Target,
    place: str,
    folder: Path,
    *,
    gdb_path: str,
    stall_seconds: float,
    timeout: float,
    watch: Callable[[], None] = lambda: None,
    waiting: Callable[[], None] = lambda: None,
) -> Ran:
    """Load `elf` at `place` and run it with `folder` as its host's current directory.

    It may run for `stall_seconds` between two requests to its host, and for `timeout` seconds in total. `waiting` is
    called while another run uses the board. Raises StageError if no server answers, the chip is another one, or the
    firmware cannot be loaded, stops by itself or does not stop.
    """
    named = symbols(elf)
    with taken(place, waiting), contextlib.closing(Gdb(gdb_path, folder, elf)) as gdb:
        _connect(gdb, place)
        with _answering(place):
            _halt(gdb, place)
            chip = check_chip(gdb, target.chip, target.name, place)
            simulator = _simulator(gdb)
            _load(gdb, elf, target, place)
            _start(gdb, target, named)
            served = Served(gdb, folder, named, target.word_bits // 8)
            gdb.deadline = deadline = time.monotonic() + timeout
            while served.exit_code is None:
                left = deadline - time.monotonic()
                bounds = [(stall_seconds, "stall_seconds", "from one layer to the next"), (left, "timeout", "in all")]
                seconds, option, of = min(bounds)
                hint = _LONGER.format(option, of)
                # With most of the time gone before, it is not this wait that tells of a program that hangs.
                talked = seconds == left < timeout / 2
                try:
                    if left <= 0 or not _goes_on(gdb, elf, target, place, seconds, named):
                        raise _talked(target, timeout, hint) if talked else _runs_on(gdb, elf, target, seconds, hint)
                    served.serve()
                except GdbSilent:
                    if time.monotonic() < deadline:
                        raise
                    raise _talked(target, timeout, _LONGER.format("timeout", "in all")) from None
                watch()
        finished = Finished(served.exit_code, served.printed)
        if served.exit_code == _FAULT:
            raise StageError(_fault_message(finished, elf, target))
        return Ran(finished, _counted(served.counter, simulator, target), chip, simulator)


def _fault_message(finished: Finished, elf: Path, target: Target) -> str:
    """Return the message of the firmware's own fault handler."""
    message: str = import_module(family_of(target).FAULTS).fault_message(finished, elf, target)
    return message


def _simulator(gdb: Gdb) -> str:
    """Return `QEMU` if the server is QEMU, otherwise ''."""
    with contextlib.suppress(GdbError):
        return "QEMU" if "ENABLE=" in gdb.console(f"maintenance packet {_QEMUS_PACKET}") else ""
    return ""


def _counted(counter: int, simulator: str, target: Target) -> str:
    """Describe a counter's figures.

    Figures of QEMU follow the clock of the machine that it runs on.
    """
    called = family_of(target).COUNTERS.get(counter)
    return f"{'ticks' if simulator else 'cycles'} by {called}" if called else ""


def _connect(gdb: Gdb, place: str) -> None:
    where = address(place)
    _known_host(where)
    hint = "start OpenOCD, pyOCD, JLinkGDBServer or probe-rs first; docs/how-to/hardware.md shows how"
    try:
        greeting = gdb.connect(where)
    except GdbError as error:
        reason = str(error).removeprefix(f"{where}: ").rstrip(".")
        if reason.endswith("Connection timed out"):  # GDB tries again and again where it is refused
            reason = "nothing listens there, or a firewall blocks it"
        raise StageError(f"no GDB server answers at {where}: {reason}", hint=hint) from None
    except GdbFlood:
        raise _flood(place) from None
    except (GdbSilent, GdbClosed) as error:
        does = "closes the connection" if isinstance(error, GdbClosed) else "does not answer as a GDB server"
        message = f"the server at {where} {does}"
        raise StageError(message, hint="use the server's GDB port, and check that the probe is connected") from None
    if match := _ANOTHER_CORE.search(greeting):
        message = f"the core at {where} is {match[2]}, but the firmware is for {match[1]}"
        raise StageError(message, hint="nothing was written to it; name the board that is connected with board=NAME")


def _known_host(where: str) -> None:
    """Raise StageError for a host name without address; GDB's own text is unclear."""
    host = where.rpartition(":")[0].strip("[]")
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        message = f"run_on=gdb://{where}: no machine has the name {host}"
        raise StageError(message, hint="check the spelling of the name; localhost is this machine") from None


@contextlib.contextmanager
def _answering(place: str) -> Iterator[None]:
    """Turn errors of GDB or the server into StageError."""
    try:
        yield
    except GdbError as error:
        raise StageError(f"the GDB server at {place} failed: {error}", hint="its own output says more") from None
    except GdbFlood:
        raise _flood(place) from None
    except (GdbSilent, GdbClosed) as error:
        does = "has closed the connection" if isinstance(error, GdbClosed) else "does not answer any more"
        message = f"the GDB server at {place} {does}"
        raise StageError(message, hint="check the probe, its cable, and the server's output") from None


def _flood(place: str) -> StageError:
    message = f"the GDB server at {place} prints without an end: more than {MOST_PRINTED >> 20} MiB for one command"
    return StageError(message, hint="lower its log level, turn semihosting off, or find the repeated line")


def _halt(gdb: Gdb, place: str) -> None:
    """Halt the target, with a reset if the server supports it.

    OpenOCD, pyOCD and probe-rs support `reset halt`. A `reset` alone halts with J-Link, but with OpenOCD it starts the
    program in flash. QEMU has no reset; its machine is halted when GDB connects. Raises StageError if the target keeps
    running.
    """
    if not _monitored(gdb, "reset halt"):
        _monitored(gdb, "reset")
        _monitored(gdb, "halt")
    try:
        seen = {_place_now(gdb) for _ in range(2)}
    except GdbError:
        seen = set()
    gdb.forget_stops()
    if len(seen) != 1:
        raise StageError(
            f"the core at {place} does not halt, so nothing was loaded",
            hint="connect the probe's reset line, or let the server connect under reset",
        )


def _monitored(gdb: Gdb, words: str) -> bool:
    """Return whether the server executed a command; the first line of its answer tells."""
    try:
        said = gdb.console(f"monitor {words}").strip()
    except GdbError:
        return False
    return not _UNKNOWN.search(said.partition("\n")[0])


def _place_now(gdb: Gdb) -> int:
    """Return the program counter of the halted target. Raises GdbError."""
    # What the target did meanwhile the server tells GDB only when it is asked.
    with contextlib.suppress(GdbError):
        gdb.console("maintenance flush register-cache")
    return gdb.value("$pc")


def _load(gdb: Gdb, elf: Path, target: Target, place: str) -> None:
    size = elf.stat().st_size
    seconds = PATIENCE + size / BYTES_PER_SECOND
    try:
        gdb.command("-target-download", seconds)
    except GdbError as error:
        hint = f"{target.name} has " + ", ".join(
            f"{name} at {region.origin:#010x}"
            for name, region in (target.memory.regions if target.memory else {}).items()
        )
        raise StageError(f"the firmware cannot be loaded at {place}: {error}", hint=hint) from None
    # All of them: what is copied from flash at the start is not read-only.
    said = gdb.console("compare-sections", seconds)
    same = {found[1] for found in re.finditer(r"^Section (\S+), range .*: matched", said, re.MULTILINE)}
    if wrong := [name for name in _loaded(elf) if name not in same]:
        message = f"the memory at {place} differs from the loaded firmware: {', '.join(wrong)}"
        raise StageError(message, hint="the flash may be protected, or there is no memory at its address")


def _loaded(elf: Path) -> list[str]:
    """Return the sections of a program that have bytes to load."""
    from elftools.elf.constants import SH_FLAGS
    from elftools.elf.elffile import ELFFile

    with elf.open("rb") as stream:
        return [
            section.name
            for section in ELFFile(stream).iter_sections()
            if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section["sh_type"] != "SHT_NOBITS" and section["sh_size"]
        ]


def _start(gdb: Gdb, target: Target, named: dict[str, int]) -> None:
    gdb.command("-break-delete")
    # In flash, of which servers tell, GDB takes one of the core's.
    gdb.command(f"-break-insert *{named[STOP] & ~1:#x}")
    for register, value, always in family_of(target).at_start(named):
        with contextlib.nullcontext() if always else contextlib.suppress(GdbError):
            gdb.console(f"set var ${register} = {value}")


def _goes_on(gdb: Gdb, elf: Path, target: Target, place: str, seconds: float, named: dict[str, int]) -> bool:
    """Run the program until its next request; return whether it came within `seconds`."""
    gdb.forget_stops()
    gdb.command("-exec-continue")
    try:
        gdb.stopped(seconds)
    except GdbSilent:
        return False
    pc = gdb.value("$pc") & (2**target.word_bits - 1)
    if pc != named[STOP] & ~1:
        where = source_place(pc, elf, target)
        raise StageError(f"the firmware stopped by itself on {target.name} at {place}\nin {where}")
    return True


def _talked(target: Target, timeout: float, hint: str) -> StageError:
    message = f"the run on {target.name} took longer than {timeout:.3g} s, transfers of data included"
    return StageError(message, hint=hint)


def _runs_on(gdb: Gdb, elf: Path, target: Target, seconds: float, hint: str) -> StageError:
    where = ""
    gdb.deadline = time.monotonic() + 3 * PATIENCE
    with contextlib.suppress(GdbError, GdbClosed, GdbFlood, GdbSilent):
        gdb.command("-exec-interrupt")
        gdb.stopped(PATIENCE)
        where = f"\nin {source_place(gdb.value('$pc') & (2**target.word_bits - 1), elf, target)}"
    told = where or ", and it does not stop on request"
    return StageError(
        f"the firmware was still running on {target.name} after {seconds:.3g} s: it hangs, or takes longer{told}",
        hint=hint,
    )
