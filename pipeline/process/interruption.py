"""End of an interrupted command: Ctrl-C, SIGTERM (cancelled job), SIGHUP, closed output.

In any thread and at any point: child processes are killed, unfinished artifacts and temporary folders are removed, and
one line reports the interruption.

    SIGINT, … -> handler, in the main thread: kill children, raise KeyboardInterrupt
                    -> `finally` and `with` of the main thread
                    -> `interruptible`: raise it in the other threads too, clean up, exit
                    -> watcher, a thread: sends the signal again until the main thread runs the handler; cleans up
                       and exits itself if the main thread does not

The watcher is needed because Python runs handlers only between two bytecodes of the main thread. A signal just before
that thread waits for a lock is not handled until the lock is free; a signal in C++ code, not until that returns.

Imports little, so that the handler is installed before slow imports.
"""

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
from stages.support.system.scratch import clear_abandoned, make_folder, remove_folder

# Exit code of a process that SIGPIPE ended.
_BROKEN_PIPE = 128 + signal.SIGPIPE
# Seconds for other threads to end, and for the main thread to leave `interruptible`.
_TIMEOUT = 3.0
# Seconds between repeated signals to the main thread.
_RESEND_INTERVAL = 0.1

# The name of the watcher's thread.
_WATCHER = "firmline-signals"

# The signal that ends this process; 0 before.
_received = 0
# The folder of temporary files.
_folder: Path | None = None
# Folders to remove if the process is interrupted.
_remove_on_interruption: set[Path] = set()
# Locked by the thread that ends the process.
_ending = threading.Lock()


def interrupted() -> bool:
    """Return whether a signal is ending this process, so that errors are a consequence of it."""
    return bool(_received)


@contextlib.contextmanager
def removed_on_interruption(folder: Path) -> Iterator[None]:
    """Remove the folder if the process is interrupted while the context lasts."""
    _remove_on_interruption.add(folder)
    try:
        yield
    finally:
        # After a signal, the caller's cleanup may be interrupted too: `_end` removes the folder.
        if not interrupted():
            _remove_on_interruption.discard(folder)


def interruptible(work: Callable[[], Any]) -> Any:
    """Run `work` and return its result. An interruption ends the process.

    It prints one line to stderr and exits with 128 plus the signal's number; a closed output pipe exits silently.
    Raises PipelineError if there is no folder for temporary files.
    """
    global _folder
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        clear_abandoned()
        folder = _folder = make_folder("command")
    except OSError as error:
        raise PipelineError(f"no folder for temporary files: {error.strerror}", hint="set TMPDIR to one") from None
    try:
        for number, handler in before.items():
            # Keep SIGINT ignored in a shell's background jobs.
            if handler != signal.SIG_IGN:
                signal.signal(number, _on_signal)
        with _watched(folder), _temporary_files(folder):
            return _run(work, folder)
    except KeyboardInterrupt:
        # The signal came at the end of `_run`.
        _end_interrupted(_received, folder)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _temporary_files(folder: Path) -> Iterator[None]:
    """Put temporary files, also those of child processes, into `folder`."""
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
    # Ignore a second signal, and one while the process is ending.
    if not _received and not _ending.locked():
        _received = number
        # Python would warn about its killed helper processes.
        warnings.simplefilter("ignore")
        _kill_children()
        raise KeyboardInterrupt


@contextlib.contextmanager
def _watched(folder: Path) -> Iterator[None]:
    """Run a watcher thread that ends the process after a signal and removes `folder`."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # Python's C signal handler writes each signal's number to the pipe at once, whatever the threads do.
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reading, folder), name=_WATCHER, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)
        # After a signal, the watcher waits for this thread to end the process.
        if not interrupted():
            watcher.join()
            os.close(reading)


def _watch(reading: int, folder: Path) -> None:
    global _received
    while numbers := os.read(reading, 1):
        number = numbers[0]
        if number not in SIGNALS or signal.getsignal(number) is not _on_signal:
            continue
        deadline = time.monotonic() + _TIMEOUT
        while not _ending.locked() and time.monotonic() < deadline:
            time.sleep(_RESEND_INTERVAL)
            if not interrupted():
                signal.pthread_kill(threading.main_thread().ident or 0, number)
        _received = _received or number
        _end_interrupted(_received, folder)


def end_now(message: str, code: int) -> NoReturn:
    """End the process from any thread: print `message` to stderr and exit with `code`."""
    global _received
    # Later errors are a consequence of this.
    _received = _received or signal.SIGPIPE
    _end(message, code, _folder)


def _end_interrupted(number: int, temporary: Path) -> NoReturn:
    _end(f"{MESSAGE}\n", 128 + (number or signal.SIGINT), temporary)


def _end(message: str, code: int, temporary: Path | None) -> NoReturn:
    """Stop other threads, clean up, print `message`, and exit at once.

    A thread inside C++ cannot be stopped, so the exit does not wait for all threads.
    """
    if not _ending.acquire(blocking=False):
        # Another thread ends the process.
        while True:
            time.sleep(_TIMEOUT)
    threading.excepthook = lambda _: None
    deadline = time.monotonic() + _TIMEOUT
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
        # Repeatedly: a thread may just have started a child.
        _kill_children()
        if not others or time.monotonic() > deadline:
            break
        others[0].join(0.05)
    for folder in (*_remove_on_interruption, *([temporary] if temporary is not None else [])):
        shutil.rmtree(folder, ignore_errors=True)
    # Not through pipeline.process.streams, which would end the process again.
    for stream, text in ((getattr(sys.stdout, "stream", sys.stdout), ""), (sys.stderr, message)):
        with contextlib.suppress(OSError, ValueError):
            stream.write(text)
            stream.flush()
    os._exit(code)


def _kill_children() -> None:
    """Kill all descendants of this process."""
    for process in _descendants(os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


def _descendants(process: int) -> list[int]:
    """Return the ids of all processes below one, from /proc/<id>/stat.

    See proc(5): the fourth field is the parent's id.
    """
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The second field is a name in parentheses that may contain spaces.
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    descendants: list[int] = []
    pending = [process]
    while pending:
        below = children.get(pending.pop(), [])
        descendants += below
        pending += below
    return descendants
