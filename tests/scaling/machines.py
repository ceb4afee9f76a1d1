"""`python -m tests.scaling.machines`: several machines at once, as far as one can have them, against one alone.

A scheduler, workers and the machine that one is at, each in a clone of its own with a store of its own, and a folder as
the remote store between them. A matrix of recipes runs while one worker is killed with -9 and another comes; then `doit
bench`. What they leave has to be, byte for byte, what a fifth clone makes alone. Minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pipeline.artifacts.inventory import inventory
from pipeline.artifacts.manifest import content_of
from pipeline.artifacts.store import Store
from stages.system.installation import INSTALLATION

_SCHEDULER = "distributed.cli.dask_scheduler"
_WORKER = "distributed.cli.dask_worker"
_FILES = ("firmware.elf", "model.c", "weights.c")


# The command that measures, and the file that it writes.
_BENCH = ["bench", "--only=digits", "--targets=rv64-rvp", "--json=figures.json"], "figures.json"


class _Failed(Exception):
    """The two differ, or one did not come to its end."""


class Machine:
    """A clone, in which commands run."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.root = folder
        subprocess.run(["git", "clone", "-q", str(INSTALLATION), str(folder)], check=True)
        kept = {name: text for name, text in os.environ.items() if not name.startswith("FIRMLINE_")}
        models = {name: text for name, text in os.environ.items() if name == "FIRMLINE_MODELS"}
        self.environment = {**kept, **models, **environment, "PYTHONPATH": str(folder)}

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """A module of Python with arguments, ended with the block."""
        with (self.root / f"{words[0]}.log").open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *words], cwd=self.root, env=self.environment, stdout=output, stderr=output
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def doit(self, *words: str) -> None:
        """Run a command to its end. Raises _Failed."""
        command = [sys.executable, "-m", "pipeline", *words]
        done = subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise _Failed(f"doit {' '.join(words)}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")

    def built(self) -> dict[str, bytes]:
        """What runs have left of code."""
        found = (path for path in (self.root / "build").rglob("*") if path.name in _FILES)
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in found}

    def contents(self) -> dict[str, str]:
        """The artifacts of its store: digests of their files by key."""
        store = Store(self.root / ".firmline/store")
        found = {one.key: store.manifest(one.key) for one in inventory(store) if one.stage != "file"}
        return {key: content_of(manifest) for key, manifest in found.items() if manifest is not None}


def main(words: list[str] | None = None) -> int:
    """Run all, say what was compared. Returns the exit code."""
    parser = argparse.ArgumentParser("python -m tests.scaling.machines", description="Several machines against one.")
    parser.add_argument("--recipe", default="tiny_matrix", help="the matrix [tiny_matrix]")
    parser.add_argument("--target", default="rv64-rvp", help="on which targets, with commas [rv64-rvp]")
    parser.add_argument("--after", type=int, default=12, help="kill a worker when so many artifacts are there [12]")
    parser.add_argument("--only", default="", help="run or bench alone, with commas")
    given = parser.parse_args(words)
    wanted = [word for word in given.only.split(",") if word] or ["run", "bench"]
    with tempfile.TemporaryDirectory(prefix="firmline-machines-") as name, ExitStack() as stack:
        folder = Path(name)
        remote = {"FIRMLINE_REMOTE": f"file://{folder}/shared"}
        here, a, b, c = (Machine(folder / one, **remote) for one in ("here", "a", "b", "c"))
        alone = Machine(folder / "alone")
        place = folder / "scheduler.json"
        options = ["--scheduler-file", str(place), "--no-dashboard"]
        stack.enter_context(here.started(_SCHEDULER, *options, "--host", "127.0.0.1", "--port", "0"))
        executor = f"executor={_address(place)}"
        common = [_WORKER, *options, "--nthreads", "1", "--no-nanny"]
        killed = stack.enter_context(a.started(*common, "--name", "a"))
        stack.enter_context(b.started(*common, "--name", "b"))
        try:
            if "run" in wanted:
                killing = threading.Thread(target=_kill, args=(killed, folder / "shared/ac", given.after), daemon=True)
                killing.start()
                recipes = (f"recipe={given.recipe}", f"target={given.target}")
                here.doit("run", *recipes, executor)
                if killed.poll() is None:
                    raise _Failed("the run was over before a worker was killed")
                alone.doit("run", *recipes)
                _compare_runs(here, alone, [a, b])
            stack.enter_context(c.started(*common, "--name", "c"))
            if "bench" in wanted:
                _measured(here, alone, executor)
        except _Failed as error:
            sys.stderr.write(f"ERROR: {error}\n")
            return 1
    return 0


def _measured(here: Machine, alone: Machine, executor: str) -> None:
    """`doit bench` in both, and the file that it writes compared."""
    words, name = _BENCH
    files = []
    for machine, more in ((here, [executor]), (alone, [])):
        place = machine.root / name
        place.unlink(missing_ok=True)
        machine.doit(*words, *more)
        files.append(place.read_bytes())
    if files[0] != files[1]:
        raise _Failed(f"{' '.join(words)}: {name} differs")
    print(f"{' '.join(words)}: {name}, {len(files[0]):,} bytes, is the same", flush=True)


def _compare_runs(here: Machine, alone: Machine, workers: list[Machine]) -> None:
    wanted, own = alone.contents(), here.contents()
    there: dict[str, str] = {}
    for worker in workers:
        there |= worker.contents()
    wrong = [key for key, content in wanted.items() if there.get(key) != content]
    if wrong or there.keys() != wanted.keys() or not own.items() <= wanted.items():
        raise _Failed(f"{len(wrong)} of {len(wanted)} artifacts differ, {len(there)} were made by workers")
    if here.built() != alone.built():
        raise _Failed("the build folders differ")
    shown = f"{len(own)} of them came to the machine that gave the work away, {len(here.built())} files of build/"
    print(f"{len(wanted)} artifacts are the same as those of one machine; {shown}", flush=True)


def _address(place: Path) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if place.exists() and place.stat().st_size:
            return str(json.loads(place.read_text())["address"]).replace("tcp:", "dask:")
        time.sleep(0.1)
    raise _Failed("the scheduler does not start")


def _kill(worker: subprocess.Popen[bytes], entries: Path, after: int) -> None:
    """kill -9 in the middle of the run, when the remote store has so many artifacts."""
    while not entries.is_dir() or len(list(entries.iterdir())) < after:
        time.sleep(0.1)
    worker.send_signal(signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
