"""`doit bench --times`: duration of cold, unchanged and changed runs, explain, dry run.

Each run is a process with a new store. Times depend on the machine, so they are printed only.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline.commands.bench.suite import Times
from pipeline.errors import PipelineError
from stages.support.system.scratch import temporary_folder

_KIB = 1024
# With this variable set, each start would compile all Python files.
_AS_USUAL = {"PYTHONDONTWRITEBYTECODE": ""}

# Runs a command and writes its wall seconds and peak RSS in KiB to a file. Arguments: the file, then the command.
# A child of a large process counts memory shared before exec; a child of this small one does not.
_LAUNCHER = """
import resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.run(sys.argv[2:]).returncode
seconds = time.perf_counter() - start
open(sys.argv[1], "w").write(f"{seconds} {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}")
sys.exit(code)
"""


@dataclass(frozen=True)
class Timing:
    """One run: wall seconds, largest resident set of a process in bytes, stages that ran."""

    what: str
    seconds: float
    peak_rss: int
    stages: int = 0

    def __str__(self) -> str:
        memory = f"peak RSS {self.peak_rss / 2**20:6,.0f} MiB"
        return f"  {self.what:34} {self.seconds:8.2f} s   {memory}   {self.stages} stages ran"


def measure_times(times: Times, root: Path, show: Callable[[str], None]) -> None:
    """Run and print each figure. Raises PipelineError for a failed run."""
    show(f"{times.recipe}, {os.cpu_count()} cores")
    with temporary_folder("times") as folder:
        store = folder / "store"
        runs = (
            ("cold: a new store", ("run",)),
            ("nothing changed", ("run",)),
            ("a tensorize parameter changed", ("run", f"set={times.changed}")),
            ("back again", ("run",)),
            ("explain", ("explain",)),
            ("a dry run", ("run", "--dry-run")),
        )
        for what, (command_name, *arguments) in runs:
            command = [sys.executable, "-m", "doit", command_name, f"recipe={times.recipe}", *arguments]
            show(str(timed(what, command, root, {**os.environ, "FIRMLINE_STORE": str(store), **_AS_USUAL})))


def timed(what: str, command: list[str], folder: Path, environment: dict[str, str]) -> Timing:
    """Run a command in a folder and measure it. Raises PipelineError with its last output."""
    with tempfile.TemporaryFile() as output, tempfile.NamedTemporaryFile() as measured:
        launched = [sys.executable, "-c", _LAUNCHER, measured.name, *command]
        run = subprocess.run(launched, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
        output.seek(0)
        seconds, _, peak_kib = measured.read().partition(b" ")
        lines = output.read().decode(errors="replace").strip().splitlines()
        if run.returncode:
            raise PipelineError("\n".join([f"{what}: the run failed", *lines[-3:]]))
    # Lines of the reporter: kind, `ran` or `cached`, seconds, key.
    stages = sum(words[1:2] == ["ran"] for words in map(str.split, lines))
    return Timing(what, float(seconds), int(peak_kib) * _KIB, stages)
