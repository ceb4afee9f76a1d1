"""How far more workers help: a simulation of a run on many, with stage times that were measured.

A recipe is a chain of stages. Each takes, one after the other

    client      the machine that one is at: key, request, then what was made, as far as it reads that. One at a time
    scheduler   of Dask: one at a time
    worker      what it does beside computing: looking up code and tools, getting the inputs; then the stage itself
    server      the remote store: bytes of inputs to the worker, of the artifact from it, and to the client what that
                reads. All share its bandwidth; it answers many at a time, each after some milliseconds

Stage times are those of reports, in turn; what several recipes could share is not counted.
"""

from __future__ import annotations

import heapq
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from pipeline.runs.publish import ON_BOARD

WORKERS = (1, 4, 10, 25, 50, 100, 200)
# As DaskExecutor.width: so many stages are given away at a time.
AHEAD, MOST = 2, 512
LINES = ("client", "scheduler", "server")
# Stages whose artifacts the client reads: for early checks, and for the build folder.
_READ_HERE = ("import", "emit", "compile", "report")
# A doubling that brings less than this is where it stops scaling.
WORTH = 1.5


@dataclass(frozen=True)
class Costs:
    """Seconds of one stage beside its own time, by who takes them; of the server by artifact, and bytes in a second."""

    client: float
    scheduler: float
    worker: float
    server: float
    bandwidth: float


@dataclass(frozen=True)
class Step:
    """A stage of a recipe: its own seconds, and the bytes that it reads, leaves, and of these the client reads."""

    seconds: float
    reads: float
    leaves: float
    comes: float


@dataclass(frozen=True)
class Outcome:
    """A simulated run: seconds in all, and which share of them each was at work (of the workers, on average)."""

    workers: int
    seconds: float
    shares: Mapping[str, float]


class _Line:
    """Who does one thing at a time, in the order in which they are asked for."""

    def __init__(self) -> None:
        self.free, self.busy = 0.0, 0.0

    def done(self, now: float, seconds: float) -> float:
        """When something is done that is asked for now and takes so long."""
        self.free = max(now, self.free) + seconds
        self.busy += seconds
        return self.free


@dataclass
class _Run:
    """The state of a simulation."""

    costs: Costs
    workers: int
    events: list[tuple[float, int, Callable[[float], None]]] = field(default_factory=list)
    lines: dict[str, _Line] = field(default_factory=lambda: {name: _Line() for name in LINES})
    ready: deque[tuple[Sequence[Step], int]] = field(default_factory=deque)
    given: deque[tuple[Sequence[Step], int]] = field(default_factory=deque)
    away: int = 0
    at_work: int = 0
    busy: float = 0.0
    count: int = 0

    def at(self, time: float, what: Callable[[float], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (time, self.count, what))

    def give(self, now: float) -> None:
        """Give away what is ready, as long as not too much is away."""
        while self.ready and self.away < min(max(AHEAD * self.workers, 2), MOST):
            recipe, number = self.ready.popleft()
            self.away += 1
            told = self.lines["client"].done(now, self.costs.client / 2)
            self.at(told, lambda then, one=(recipe, number): self.schedule(then, one))  # type: ignore[misc]

    def schedule(self, now: float, one: tuple[Sequence[Step], int]) -> None:
        done = self.lines["scheduler"].done(now, self.costs.scheduler)
        self.at(done, lambda then: self.arrive(then, one))

    def arrive(self, now: float, one: tuple[Sequence[Step], int]) -> None:
        self.given.append(one)
        self.begin(now)

    def begin(self, now: float) -> None:
        if not self.given or self.at_work == self.workers:
            return
        recipe, number = self.given.popleft()
        self.at_work += 1
        self.at(now + self.costs.worker, lambda then: self.compute(then, now, recipe, number))

    def compute(self, now: float, began: float, recipe: Sequence[Step], number: int) -> None:
        there = self.moved(now, recipe[number].reads)
        self.at(there + recipe[number].seconds, lambda then: self.leave(then, began, recipe, number))

    def leave(self, now: float, began: float, recipe: Sequence[Step], number: int) -> None:
        sent = self.moved(now, recipe[number].leaves)
        self.at(sent, lambda then: self.end(then, began, recipe, number))

    def end(self, now: float, began: float, recipe: Sequence[Step], number: int) -> None:
        self.at_work -= 1
        self.busy += now - began
        self.begin(now)
        there = self.moved(now, recipe[number].comes)
        self.at(there, lambda then: self.fetched(then, recipe, number))

    def fetched(self, now: float, recipe: Sequence[Step], number: int) -> None:
        seen = self.lines["client"].done(now, self.costs.client / 2)
        self.at(seen, lambda then: self.next(then, recipe, number))

    def next(self, now: float, recipe: Sequence[Step], number: int) -> None:
        self.away -= 1
        if number + 1 < len(recipe):
            self.ready.appendleft((recipe, number + 1))
        self.give(now)

    def moved(self, now: float, size: float) -> float:
        return self.lines["server"].done(now, size / self.costs.bandwidth) + self.costs.server


def simulate(recipes: Sequence[Sequence[Step]], workers: int, costs: Costs) -> Outcome:
    """A run of these recipes on so many workers."""
    run = _Run(costs, workers)
    run.ready.extend((recipe, 0) for recipe in recipes if recipe)
    run.give(0.0)
    now = 0.0
    while run.events:
        now, _, what = heapq.heappop(run.events)
        what(now)
    seconds = now or 1e-9
    shares = {name: line.busy / seconds for name, line in run.lines.items()}
    return Outcome(workers, now, {"workers": run.busy / seconds / workers, **shares})


def stops_at(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The first of these, by rising workers, after which more bring too little; None where all are worth it."""
    for one, more in pairwise(outcomes):
        # Twice as many workers are to bring WORTH; others as much in proportion.
        wanted = 1 + (WORTH - 1) * (more.workers / one.workers - 1)
        if one.seconds / more.seconds < wanted:
            return one
    return None


def read_reports(folder: Path, measured: Callable[[], Mapping[str, float]]) -> Iterator[list[Step]]:
    """The stages of each report.json below a folder, with bytes by the kind of stage. What is no report is left out.

    `measured` gives these bytes; nobody asks for them where there is no report.
    """
    sizes: Mapping[str, float] | None = None
    for path in sorted(folder.rglob("report.json")):
        if path.parent.name == ON_BOARD:  # the last run on a board, again
            continue
        try:
            stages = json.loads(path.read_text(encoding="utf-8"))["stages"]
            times = [(str(one["kind"]), float(one["seconds"])) for one in stages]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        before = 0.0
        steps = []
        sizes = measured() if sizes is None else sizes
        for kind, seconds in times:
            leaves = sizes.get(kind, 0.0)
            steps.append(Step(seconds, before, leaves, leaves if kind in _READ_HERE else 0.0))
            before = leaves
        if steps:
            yield steps
