"""The end of a command that is interrupted: Ctrl-C, SIGTERM (a cancelled job), SIGHUP, output that nobody reads.

Whatever the command was doing, in whichever thread: its child processes are killed, the artifacts that were being made
are removed, so are temporary folders, and one line says that it was interrupted.

    SIGINT, … -> handler, in the main thread: kill children, raise KeyboardInterrupt
                    -> `finally` and `with` of the main thread
                    -> `guarded`: raise it in the other threads too, clean, exit
                    -> watcher, a thread: sends the signal again while the main thread has not run the handler,
                       and does the last line itself when the main thread does not come that far

The watcher is needed because Python runs handlers between two bytecodes of the main thread only: a signal that comes
in the instant before that thread starts to wait for a lock is not seen until the lock is free, and one that comes
while it is inside C++ not before that returns.

Imports little, so that a signal that comes while the rest is imported finds the handler there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from pipeline.errors import PipelineError
from pipeline.process.signals import MESSAGE, SIGNALS
from stages.system.scratch import clear_abandoned, make_folder, remove_folder

# What a shell shows for a process that SIGPIPE ended.
_BROKEN_PIPE = 128 + signal.SIGPIPE
# Seconds that other threads have to end, and the main thread to reach the end of `guarded`.
_PATIENCE = 3.0
# Seconds after which the main thread is reminded of a signal.
_REMINDER = 0.1

# The name of the watcher's thread.
_WATCHER = "firmline-signals"

# The signal that ends this process, 0 before one came.
_received = 0
# Where temporary files are.
_folder: Path | None = None
# Folders that are not to stay when the process ends early.
_unfinished: set[Path] = set()
# Held by the thread that ends the process.
_ending = threading.Lock()


def interrupted() -> bool:
    """Whether a signal is ending this process: what fails from now on fails for that reason."""
    return bool(_received)


@contextlib.contextmanager
def unfinished(folder: Path) -> Iterator[None]:
    """While this lasts, an interruption removes the folder."""
    _unfinished.add(folder)
    try:
        yield
    finally:
        # Once a signal came, what cleans up here may be interrupted too: then the folder is left to `_end`.
        if not interrupted():
            _unfinished.discard(folder)


def guarded(work: Callable[[], Any]) -> Any:
    """What `work` returns. An interruption ends the process: one line on stderr, exit code 128 and the signal's number.

    A pipe that nobody reads any more ends it quietly. Raises PipelineError when there is no place for temporary files.
    """
    global _folder
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        clear_abandoned()
        folder = _folder = make_folder("command")
    except OSError as error:
        raise PipelineError(f"no folder for temporary files: {error.strerror}", hint="TMPDIR can name one") from None
    try:
        for number, handler in before.items():
            # A shell starts background jobs with SIGINT ignored; so they stay.
            if handler != signal.SIG_IGN:
                signal.signal(number, _on_signal)
        with _watched(folder), _temporary_files(folder):
            return _run(work, folder)
    except KeyboardInterrupt:
        # By a signal that came when `_run` was at its end.
        _end_interrupted(_received, folder)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _temporary_files(folder: Path) -> Iterator[None]:
    """While this lasts they are in `folder`, those of programs that are started too."""
    before = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before[0]
        if before[1] is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before[1]


def _run(work: Callable[[], Any], folder: Path) -> Any:
    try:
        result = work()
        sys.stdout.flush()
        return result
    except KeyboardInterrupt:
        _end_interrupted(_received, folder)
    except BrokenPipeError:
        _end("", _BROKEN_PIPE, folder)
    finally:
        remove_folder(folder)


def _on_signal(number: int, _frame: FrameType | None) -> None:
    global _received
    # A second one finds the first at work; what ends the process already is not to be interrupted.
    if not _received and not _ending.locked():
        _received = number
        # Python's own helper processes are missed in warnings.
        warnings.simplefilter("ignore")
        _kill_children()
        raise KeyboardInterrupt


@contextlib.contextmanager
def _watched(folder: Path) -> Iterator[None]:
    """While this lasts, a thread sees to it that a signal ends the process; `folder` is removed then."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # The C part of Python's signal handling writes each signal's number there at once, whatever the threads do.
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reading, folder), name=_WATCHER, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)
        # After a signal the watcher waits for this thread to end the process.
        if not interrupted():
            watcher.join()
            os.close(reading)


def _watch(reading: int, folder: Path) -> None:
    global _received
    while numbers := os.read(reading, 1):
        number = numbers[0]
        if number not in SIGNALS or signal.getsignal(number) is not _on_signal:
            continue
        deadline = time.monotonic() + _PATIENCE
        while not _ending.locked() and time.monotonic() < deadline:
            time.sleep(_REMINDER)
            if not interrupted():
                signal.pthread_kill(threading.main_thread().ident or 0, number)
        _received = _received or number
        _end_interrupted(_received, folder)


def end_now(message: str, code: int) -> NoReturn:
    """End the process from any thread, as an interruption does: with `message` on stderr and exit code `code`."""
    global _received
    # What fails from now on fails for this reason.
    _received = _received or signal.SIGPIPE
    _end(message, code, _folder)


def _end_interrupted(number: int, temporary: Path) -> NoReturn:
    _end(f"{MESSAGE}\n", 128 + (number or signal.SIGINT), temporary)


def _end(message: str, code: int, temporary: Path | None) -> NoReturn:
    """Stop what other threads do, clean, say `message`, and exit at once: a thread inside C++ cannot be stopped."""
    if not _ending.acquire(blocking=False):
        # Another thread is at it, and ends this one with the process.
        while True:
            time.sleep(_PATIENCE)
    threading.excepthook = lambda _: None
    deadline = time.monotonic() + _PATIENCE
    others = [
        thread
        for thread in threading.enumerate()
        if thread is not threading.current_thread() and thread.name != _WATCHER
    ]
    for thread in others:
        if thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt)
            )
    while True:
        others = [thread for thread in others if thread.is_alive()]
        # Again and again: a thread may just have started one, also one that has ended since.
        _kill_children()
        if not others or time.monotonic() > deadline:
            break
        others[0].join(0.05)
    for folder in (*_unfinished, *([temporary] if temporary is not None else [])):
        shutil.rmtree(folder, ignore_errors=True)
    # Not by way of pipeline.process.streams, which would end the process once more.
    for stream, text in ((getattr(sys.stdout, "stream", sys.stdout), ""), (sys.stderr, message)):
        with contextlib.suppress(OSError, ValueError):
            stream.write(text)
            stream.flush()
    os._exit(code)


def _kill_children() -> None:
    """Kill all descendants of this process, children of killed children included."""
    for process in _descendants(os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


def _descendants(process: int) -> list[int]:
    """Ids of all processes below one, from /proc/<id>/stat (proc(5): the fourth field is the parent's)."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The second field, a name in parentheses, may have spaces itself.
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    found: list[int] = []
    pending = [process]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found
