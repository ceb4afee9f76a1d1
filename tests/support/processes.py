"""Processes of this Python; and what a process and all it started use, from /proc."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.support.system.installation import INSTALLATION

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Usage:
    """Of one moment: `seconds` of CPU so far with those of ended children, `bytes` resident, the processes' numbers."""

    seconds: float
    bytes: int
    pids: tuple[int, ...]


def usage(root: int) -> Usage:
    """Of the process `root` and its descendants."""
    found: dict[int, tuple[int, float, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                ticks = sum(int(value) for value in fields[11:15])
                found[int(entry.name)] = (int(fields[1]), ticks / _TICKS, int(fields[21]) * _PAGE)
    family, known = [root], {root}
    for pid in family:
        children = [child for child, (parent, _, _) in found.items() if parent == pid and child not in known]
        family += children
        known.update(children)
    alive = [found[pid] for pid in family if pid in found]
    return Usage(
        sum(row[1] for row in alive), sum(row[2] for row in alive), tuple(pid for pid in family if pid in found)
    )


def end(root: int) -> None:
    """Ends the process and its descendants."""
    for pid in usage(root).pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_until(condition: Callable[[], bool]) -> None:
    """Waits until what another process does is there, two minutes at most."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def python(*words: str, cwd: Path = INSTALLATION, **options: Any) -> subprocess.CompletedProcess[str]:
    """The end of a process of this Python that finds this installation's modules; AssertionError where it fails.

    options  `env`: what its environment has more; others as for subprocess.run. `check=False`: it may fail
    """
    environment = {**os.environ, "PYTHONPATH": str(INSTALLATION), **options.pop("env", {})}
    check = options.pop("check", True)
    command, how = [sys.executable, *words], {"capture_output": True, "text": True, "cwd": cwd, "env": environment}
    done = subprocess.run(command, **how, **options, check=False)
    assert done.returncode == 0 or not check, done.stderr
    return done
