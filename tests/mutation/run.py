"""Makes changes in a copy of the project, runs tests there, and says which changes survived."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.mutation.change import Change
from tests.mutation.packages import Package, changes
from tests.support import processes
from tests.support.emitted import ROOT

_UNMEASURED = 300.0  # CPU seconds of tests that were not run on unchanged code
VERDICTS = ("killed", "timeout", "survived", "error")
_NOTHING_RAN = (4, 5)  # exit codes of pytest: wrong usage, no test collected
_LEFT_OUT = (
    ".git",
    ".venv",
    "build",
    "store",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
)


@dataclass(frozen=True)
class Mutant:
    """A change of one file of a package; `path` is relative to the project's root, `text` what the file has."""

    package: Package
    path: Path
    text: str
    change: Change

    @property
    def line(self) -> int:
        """Where the change begins."""
        return self.change.line(self.text)

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.change.what}"

    @property
    def diff(self) -> str:
        """Before and after."""
        return self.change.diff(self.text)


class Copy:
    """A copy of the project that is changed. `seconds`: what a package's tests took of CPU time on unchanged code."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
        self.seconds: dict[str, float] = {}

    def check(self, package: Package, paths: Sequence[Path]) -> None:
        """Runs the package's tests of these files on unchanged code. Raises SystemExit when they fail."""
        started = processes.usage(os.getpid()).seconds
        verdict = self.test(package, paths, 3600.0)
        self.seconds[package.name] = processes.usage(os.getpid()).seconds - started
        if verdict != "survived":
            command = " ".join(package.arguments(paths))
            raise SystemExit(f"the tests of {package.name} do not pass on unchanged code: pytest {command}")

    def test(self, package: Package, paths: Sequence[Path], seconds: float) -> str:
        """What becomes of the code as it is now, of which these files changed: one of VERDICTS.

        `seconds`: of CPU time, after which it is a timeout.
        """
        command = [
            sys.executable,
            "-m",
            "pytest",
            "--all",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            *package.arguments(paths),
        ]
        environment = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        child = subprocess.Popen(
            command, cwd=self.root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            while child.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(timeout=1)
                if child.poll() is None and processes.usage(child.pid).seconds > seconds:
                    return "timeout"
        finally:
            processes.end(child.pid)
            child.wait()
        if child.returncode in _NOTHING_RAN:
            return "error"
        return "killed" if child.returncode else "survived"


def chosen(packages: Sequence[Package], count: int, seed: int, at: str = "") -> list[Mutant]:
    """`count` mutants, as many of each package; with `at` (file, or file:line) all that are there."""
    found = {
        package.name: [
            Mutant(package, path, text, change)
            for path in package.paths()
            for text in [(ROOT / path).read_text()]
            for change in changes(path, text)
        ]
        for package in packages
    }
    if at:
        file, _, line = at.partition(":")
        mutants = [mutant for package in packages for mutant in found[package.name] if str(mutant.path) == file]
        return [mutant for mutant in mutants if line in ("", str(mutant.line))]
    share = -(-count // len(packages))
    picked = []
    for package in packages:
        mutants = found[package.name]
        picked += Random(f"{seed} {package.name}").sample(mutants, min(share, len(mutants)))
    return picked


def run_mutant(copy: Copy, mutant: Mutant) -> str:
    """One of VERDICTS; the copy is as before."""
    path = copy.root / mutant.path
    try:
        path.write_text(mutant.change.apply(mutant.text))
        return copy.test(mutant.package, [mutant.path], 4 * copy.seconds.get(mutant.package.name, _UNMEASURED) + 60)
    finally:
        path.write_text(mutant.text)


def report(done: Sequence[tuple[Mutant, str]]) -> str:
    """A table by package, then each survivor with its lines, and each change with which pytest ran no test."""
    lines = [
        "",
        "| package | changes | killed | timeout | survived | error |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in dict.fromkeys(mutant.package.name for mutant, _ in done):
        counts = Counter(verdict for mutant, verdict in done if mutant.package.name == name)
        cells = [str(sum(counts.values())), *(str(counts[verdict]) for verdict in VERDICTS)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for mutant, verdict in done:
        if verdict in ("survived", "error"):
            lines += ["", f"{verdict}: {mutant}", mutant.diff]
    return "\n".join(lines)
