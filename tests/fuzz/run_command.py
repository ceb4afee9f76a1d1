"""Runs a command line in a child of the worker, in a copy of the project that may be written to."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tests.fuzz.mutate_command import Mutant, command_mutant
from tests.fuzz.outcome import Outcome, message_faults
from tests.support.emitted import ROOT

_PLACE = re.compile(r"\S")  # the words of a message are the command line's own
_TINY = "schema: 1\ntarget: host\nmodel: {op: relu, shape: [9]}\nstages: {simulate: {inputs: {random: 1}}}\n"
_PAIR = "schema: 1\nextends: tiny\nmatrix: {model: {relu: {op: relu, shape: [9]}, six: {op: relu6, shape: [9]}}}\n"
_BASE = "schema: 1\nabstract: true\ntarget: host\nmodel: {op: relu, shape: [9]}\n"
_COPIED = ("pyproject.toml", "pipeline.yaml", "pipeline", "stages", "docs")


class CommandBench:
    """A copy of the project with two small recipes."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir(parents=True)
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, self.root / name)
        recipes = self.root / "recipes"
        recipes.mkdir()
        for name, text in (("tiny", _TINY), ("pair", _PAIR), ("base", _BASE)):
            (recipes / f"{name}.yaml").write_text(text)
        (self.root / "README.md").write_text((ROOT / "README.md").read_text())


def run_command(bench: CommandBench, seed: int, index: int) -> Outcome:
    """Mutant `index`. Refused means: exit code 1 to 127 and a message of one to five lines."""
    mutant = command_mutant(seed, index)
    code, text = _execute(bench, mutant)
    if code < 0:
        return Outcome(signal.Signals(-code).name, text, ("crash",))
    if code == 0:
        faults = set(message_faults(text, _PLACE)) & {"traceback", "unexpected", "raw control characters"}
        if mutant.stream == "full" and not text and mutant.arguments[:1] == ("list",):
            faults.add("success reported")
        return Outcome("done", text if faults else "", tuple(sorted(faults)))
    if mutant.stream == "gone" and code == 128 + signal.SIGPIPE:
        return Outcome("done", text, ("stray output",) if text else ())
    return Outcome("refused", text, message_faults(text, _PLACE))


def _execute(bench: CommandBench, mutant: Mutant) -> tuple[int, str]:
    """The exit code, and what standard error had, or where that is empty, standard output."""
    environment = {**os.environ, "PYTHONPATH": str(bench.root), "COLUMNS": "100"}
    environment["FIRMLINE_STORE"] = str(bench.root / ".firmline" / "store")
    command = [sys.executable, "-P", "-m", "pipeline", *mutant.arguments]
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        output = {"read": subprocess.PIPE, "full": full, "closed": None, "gone": subprocess.PIPE}[mutant.stream]
        if mutant.stream == "closed":
            command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
        child = subprocess.Popen(
            command, cwd=bench.root, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE
        )
        if mutant.stream == "gone":
            assert child.stdout is not None
            child.stdout.close()
            child.stdout = None
        out, err = child.communicate()
    told = err.decode(errors="replace")
    return child.returncode, told if told.strip() else (out or b"").decode(errors="replace")
