"""What a stage costs beside its own time when it runs on a worker: measured here, for the simulation.

By processor time, that of client, scheduler and server: a machine that does something else as well only makes it wait.
A worker waits for disks and programs too: what it takes is its time less the stages', times the share of that time in
which it computed.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.artifacts.inventory import inventory
from pipeline.artifacts.store import Store
from pipeline.distributed.choice import ready
from pipeline.runs.session import Session
from pipeline.runs.workspace import Workspace
from tests.scaling.simulation import Costs

# Tasks that do nothing, by which the scheduler is measured.
_TASKS = 300
# A network of a gigabit; disks of one machine are no network.
_GIGABIT = 117e6


def artifact_sizes() -> dict[str, float]:
    """Mean bytes of an artifact by its stage, in the store of the current project."""
    with Workspace() as workspace:
        entries = inventory(workspace.store)
    kinds = {one.stage for one in entries}
    found = {kind: [one.bytes for one in entries if one.stage == kind] for kind in kinds}
    return {kind: sum(sizes) / len(sizes) for kind, sizes in found.items()}


def measured_costs(recipe: str, times: int = 3) -> Costs:
    """The least of several runs, of each: what else a machine does only adds. Raises PipelineError."""
    found = [_measured(recipe) for _ in range(times)]
    least = {name: min(getattr(one, name) for one in found) for name in ("client", "scheduler", "worker", "server")}
    return Costs(**least, bandwidth=_GIGABIT)


def _measured(recipe: str) -> Costs:
    """Runs a recipe on a cluster of one worker here, with empty stores and a folder between."""
    ready()
    from pipeline.distributed.dask_executor import DaskExecutor

    with tempfile.TemporaryDirectory() as name, _environment(Path(name)):
        executor = DaskExecutor(processes=1)
        try:
            begin = executor.beginning({})
            assert begin is not None
            assert executor._cluster is not None
            import psutil  # distributed brings it

            of_scheduler = psutil.Process(executor._cluster.process)
            (of_workers,) = of_scheduler.children()
            scheduler = _computed(of_scheduler)
            for wait in [begin("json:dumps", ([1],)) for _ in range(_TASKS)]:
                wait()
            scheduler = (_computed(of_scheduler) - scheduler) / _TASKS
            with Workspace(store=Path(name) / "client", build=Path(name) / "build", executor=executor) as workspace:
                plan = workspace.plan(recipe)
                session = Session(workspace, plan)
                first, *others = plan
                session.run(first)  # with it all is imported
                wall, own, theirs = time.perf_counter(), time.process_time(), _computed(of_workers, others=True)
                for action in others:
                    session.run(action)
                wall, theirs = time.perf_counter() - wall, _computed(of_workers, others=True) - theirs
                session.publish()
                own = time.process_time() - own
                session.close()
            stages = [session.results[action.kind] for action in others]
            beside = (wall - sum(one.seconds for one in stages)) / len(stages) * min(theirs / wall, 1.0)
            client = own / len(stages)
            server = _moving(Path(name), [one.key for one in stages])
            return Costs(client, scheduler, max(beside - client - scheduler, 0.0), server, _GIGABIT)
        finally:
            executor.close()


def _computed(process: Any, *, others: bool = False) -> float:
    """Seconds of processors that a process has had; with `others` those too that it started."""
    every = (process, *process.children(recursive=True)) if others else (process,)
    return sum(sum(one.cpu_times()[:4] if others else one.cpu_times()[:2]) for one in every)


def _moving(folder: Path, keys: list[str]) -> float:
    """Seconds until the smallest artifact is here that lies in the remote store."""
    seconds = []
    with Workspace(store=folder / "moved") as workspace:
        for key in keys:
            began = time.process_time()
            if workspace.brought(key) is not None:
                seconds.append(time.process_time() - began)
    return min(seconds)


@contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """Workers that are started meanwhile have a store of their own, and a folder for a remote store."""
    mine = {"FIRMLINE_STORE": str(folder / "worker"), "FIRMLINE_REMOTE": f"file://{folder}/shared"}
    before = {name: os.environ.get(name) for name in mine}
    os.environ.update(mine)
    Store(folder / "worker")
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
