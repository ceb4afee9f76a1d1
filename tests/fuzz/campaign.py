"""Runs mutants in worker processes and holds these to bounds of CPU time and memory."""

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.outcome import Outcome
from tests.support import processes
from tests.support.emitted import ROOT

KINDS = ("models", "onnx", "recipes")
SECONDS = 60.0  # of CPU for one mutant with everything it starts, compilers too; a bound and no measure
STILL = 300.0  # of wall time; who waits for ever uses no CPU
BYTES = 3 << 30


@dataclass(frozen=True)
class Job:
    """One mutant: `--fuzz-only kind:index --fuzz-seed seed` runs it again."""

    kind: str
    seed: int
    index: int

    def __str__(self) -> str:
        return f"pytest tests/fuzz --fuzz-only {self.kind}:{self.index} --fuzz-seed {self.seed}"


class _Worker:
    """A process of tests.fuzz.worker, and the job that it is at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.worker", str(folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.job: Job | None = None
        self.began, self.used = 0.0, 0.0

    def begin(self, job: Job) -> None:
        assert self.process.stdin is not None
        self.job, self.began = job, time.monotonic()
        self.used = processes.usage(self.process.pid).seconds
        self.process.stdin.write(json.dumps(vars(job)).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> Outcome:
        """What the worker says of its job; when it ended instead, how."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            told = json.loads(line)
            return Outcome(told["verdict"], told["message"], tuple(told["faults"]))
        code = self.process.wait()
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Outcome("ended", f"the process ended with {name}", ("crash",))

    def exceeds(self) -> Outcome | None:
        """The outcome of a job that is over a bound."""
        now = processes.usage(self.process.pid)
        if now.bytes > BYTES:
            return Outcome("ended", f"{now.bytes >> 20} MiB of memory", ("too much memory",))
        if now.seconds - self.used > SECONDS or time.monotonic() - self.began > STILL:
            return Outcome("ended", f"{now.seconds - self.used:.0f} s of CPU time and no end", ("hang",))
        return None

    def end(self) -> None:
        processes.end(self.process.pid)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def run(jobs: Iterable[Job], folder: Path, workers: int) -> Iterator[tuple[Job, Outcome]]:
    """The outcome of each job, in the order in which they end."""
    waiting = list(jobs)[::-1]
    idle = [_Worker(folder / f"worker{number}") for number in range(min(workers, len(waiting)))]
    busy: list[_Worker] = []
    made = len(idle)
    try:
        while waiting or busy:
            while waiting and idle:
                worker = idle.pop()
                worker.begin(waiting.pop())
                busy.append(worker)
            ready = _readable(busy)
            for worker in list(busy):
                outcome = worker.answer() if worker in ready else worker.exceeds()
                if outcome is None:
                    continue
                assert worker.job is not None
                yield worker.job, outcome
                busy.remove(worker)
                if outcome.verdict == "ended":
                    worker.end()
                    worker = _Worker(folder / f"worker{made}")
                    made += 1
                idle.append(worker)
    finally:
        for worker in (*idle, *busy):
            worker.end()


def _readable(workers: Sequence[_Worker]) -> list[_Worker]:
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            assert worker.process.stdout is not None
            selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
        return [key.data for key, _ in selector.select(timeout=0.5)]
