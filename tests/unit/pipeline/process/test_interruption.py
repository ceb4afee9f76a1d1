"""Signals and closed pipes, in a process of their own with the fake project."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stages.support.system.installation import INSTALLATION as ROOT
from tests.support.processes import wait_until
from tests.unit.pipeline.conftest import RECIPE, FakeProject

# A shell starts what runs in the background, these tests perhaps, with SIGINT ignored; Python then leaves it so.
_IN_THE_FOREGROUND = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored
"""

_DOIT = """
import sys
from pathlib import Path
from doit.doit_cmd import DoitMain
from tests.support.processes import wait_until
from tests.unit.pipeline.conftest import FakeProject, _Loader
words = tuple(sys.argv[2:])
commands = {"run": "pipeline.commands.run:Run", "list": "pipeline.commands.list_recipes:List"}
main = DoitMain(_Loader(FakeProject(Path(sys.argv[1])), words), (), {"COMMAND": commands})
sys.exit(main.run(list(words)))
"""


def start(project: FakeProject, *words: str, **streams: int) -> subprocess.Popen[str]:
    temporary = project.root / "tmp"
    temporary.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "FIRMLINE_STORE": str(project.store),
        "TMPDIR": str(temporary),
        "COVERAGE_PROCESS_START": "",
    }
    return subprocess.Popen(
        [sys.executable, "-c", _IN_THE_FOREGROUND + _DOIT, str(project.root), *words],
        env=environment,
        stdout=streams.get("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(path: Path) -> str:
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    return path.read_text()


def has_ended(process: int) -> bool:
    """Whether a process is there no more, or was killed and nobody has waited for it yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (("run", "recipe=demo"), signal.SIGINT),
        (("run", "recipe=demo"), signal.SIGHUP),
        (("run", "-n", "2", "recipe=demo,other"), signal.SIGTERM),
    ],
)
def test_signal_ends_with_one_line(project: FakeProject, words: tuple[str, ...], number: signal.Signals) -> None:
    project.recipe(RECIPE.replace("name: demo", "name: other").replace("O2", "O3"), "other")
    started = project.root / "started.txt"
    # `--version` answers; what compiles stays, as does what it starts in turn.
    compiler = f"#!/bin/sh\n[ $# -gt 0 ] && echo 13.2.0 && exit\nsleep 600 &\necho $$ $! >> {started}\nwait\n"
    project.write("bin/fakecc", compiler).chmod(0o755)
    process = start(project, *words)
    children = [int(child) for child in wait_for(started).split()]
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + number, "interrupted; finished stages are kept\n")
    assert "Traceback" not in out
    wait_until(lambda: all(map(has_ended, children)))
    assert list((project.store / "building").iterdir()) == []
    assert list((project.root / "tmp").iterdir()) == []
    # What was finished is kept.
    project.tool("13.2.0")
    project.ran()
    project.run()
    assert project.ran() == ["compile", "report"]


_STUCK = """
import signal, sys, threading
from pathlib import Path
from pipeline.process.interruption import interruptible

def work():
    def ready():
        Path(sys.argv[1]).write_text("ready\\n")
    lock = threading.Lock()
    lock.acquire()
    # Another thread gets the signal, and the main thread never runs Python's handler, as inside of C++.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    threading.Timer(0.1, ready).start()
    lock.acquire()

interruptible(work)
"""


def test_a_main_thread_that_never_comes_back_is_ended(tmp_path: Path) -> None:
    ready, temporary = tmp_path / "ready.txt", tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    words = [sys.executable, "-c", _IN_THE_FOREGROUND + _STUCK, str(ready)]
    process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    wait_for(ready)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "interrupted; finished stages are kept\n")
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("words", [("run", "-n", "2", "recipe=demo"), ("list",)])
def test_closed_pipe_ends_quietly(project: FakeProject, words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start(project, *words, stdout=writing)
    os.close(writing)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (141, "")
    assert list((project.store / "building").glob("*")) == []
