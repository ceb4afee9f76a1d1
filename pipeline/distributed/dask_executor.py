"""Runs stages as tasks of dask.distributed (the group `dask`): on a scheduler's workers, or on some made here.

Only names travel: of artifacts, which both sides have from the store or the remote store that they share. A worker that
dies is another's task then; what it had finished is in that store.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import threading
import uuid
from collections.abc import Callable, Container, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from distributed import Client, Future, get_worker
from distributed.scheduler import KilledWorker

from pipeline.artifacts.digest import digest_of
from pipeline.artifacts.manifest import ORIGIN
from pipeline.artifacts.store import Artifact
from pipeline.distributed import worker
from pipeline.distributed.code import PIPELINE, own_code, plug_in_code
from pipeline.distributed.connection import Connection
from pipeline.distributed.left import left_by
from pipeline.distributed.local_cluster import LocalCluster
from pipeline.distributed.request import differences, told
from pipeline.distributed.values import written
from pipeline.errors import InputChanged, PipelineError, StageCrashed
from pipeline.keys.planner import Action
from pipeline.keys.tools import Tools
from pipeline.project import current_project
from pipeline.runs.executor import Local, Work
from pipeline.runs.input_guard import copy_with_digest
from pipeline.runs.worker_artifacts import local_if_fetched
from pipeline.runs.workspace import Workspace
from stages.base import StageError, Tool

if TYPE_CHECKING:
    from stages.count.side_work import Begin

# Seconds to wait for the scheduler, and for a first worker.
_CONNECT, _WORKERS = 10, 60
# A worker reads and sends beside computing, and others wait for it: so many tasks for each.
_AHEAD = 2
_MOST = 512
_SHARED = "FIRMLINE_REMOTE, or FIRMLINE_STORE on a disk of all: docs/how-to/distributed.md"
_FILE = "file"


class DaskExecutor:
    """The workers of a scheduler, or without one `processes` on this machine (0: one for each core)."""

    def __init__(self, scheduler: Connection | None = None, processes: int = 0) -> None:
        # What it says of workers that come and go is not for a run's terminal.
        for logger in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]:
            logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
        self._cluster = None if scheduler is not None else LocalCluster(processes or os.cpu_count() or 1)
        to = self._cluster.connection if self._cluster is not None else scheduler
        assert to is not None
        self._shown = "the local cluster" if scheduler is None else to.text
        try:
            self._client = Client(to.address, timeout=_CONNECT, set_as_default=False, security=to.security)
        except Exception as error:
            if self._cluster is not None:
                self._cluster.close()
            raise PipelineError(f"executor={to.text}: no Dask scheduler answers there", hint=to.hint) from error
        self._topic = f"firmline-{uuid.uuid4().hex}"
        self._waiting: dict[str, Callable[..., None]] = {}
        self._lock = threading.Lock()
        self._shared: set[str] = set()
        # Stages that run here after all, and whether all do: the remote store is given up, and there is no other way.
        self._own = threading.Semaphore(os.cpu_count() or 1)
        self._alone = False
        self._code = own_code()
        self._client.subscribe_topic(self._topic, self._hear)
        self._greet()

    def _greet(self) -> None:
        """Look whether there are workers, and all of them have this machine's code. Raises PipelineError."""
        try:
            self._client.wait_for_workers(1, timeout=_WORKERS)
            answers = self._client.run(worker.greet, on_error="return")
        except Exception as error:
            self.close()
            raise PipelineError(
                f"{self._shown} has no workers", hint="start some with `dask worker`: docs/how-to/distributed.md"
            ) from error
        for name, answer in answers.items():
            if isinstance(answer, BaseException):
                self.close()
                raise PipelineError(
                    f"worker {name} is no worker of Firmline: {answer}", hint="docs/how-to/distributed.md"
                )
            if wrong := differences({"code": answer["code"]}, {"code": self._code}):
                self.close()
                raise _refused("the run", name, told(wrong))

    @property
    def max_parallel(self) -> int:
        """As Executor says: as many as the workers take now, and some that fetch and send meanwhile."""
        threads = sum(self._client.nthreads().values())
        return int(min(max(_AHEAD * threads, 2), _MOST))

    def make(self, work: Work) -> tuple[Artifact, bool]:
        """As Executor says."""
        workspace, action = work.workspace, work.action
        if not work.shared:
            return Local().make(work)
        if self._alone:
            return self._make_here(work)
        for artifact in work.artifacts.values():
            self._share(artifact, workspace)
        task = f"{action.kind}-{work.key[:12]}-{uuid.uuid4().hex[:8]}"
        inputs = {kind: artifact.key for kind, artifact in work.artifacts.items()}
        files = {name: (self._sent_file(name, path, work), path.name) for name, path in action.files.items()}
        request = {
            "stage": action.stage.kind,
            "name": action.kind,
            "recipe": action.recipe,
            "inputs": inputs,
            "ingredients": work.ingredients,
            "files": files,
            "objects": written((_options(action), action.model, action.target))[0],
            "pipeline": digest_of(PIPELINE),
            "force": work.force,
            "topic": self._topic,
            "task": task,
            "log_name": work.log_name,
        }
        workspace.flush(keys={*inputs.values(), *(key for key, _ in files.values())})
        work.progress("waits for a worker")
        self._waiting[task] = work.progress
        work.log(f"runs on {self._shown}; key {work.key}")
        try:
            answer, name = self._performed(request, work)
        finally:
            self._waiting.pop(task, None)
        if _not_as_here(answer, workspace):
            work.log(f"worker {name} {answer['message']}; the stage runs here")
            return self._make_here(work)
        if "error" in answer:
            with work.convert_errors():
                self._raise(answer, name, action.kind, work)
        found = left_by(name, work, self._make_here, cached=bool(answer["cached"]))
        if found is None:
            return self._unseen(answer, name, work)
        self._shared.add(work.key)
        if not answer["cached"]:
            for line in found.log.splitlines():
                work.log(line)
        work.log(f"made by worker {name}")
        return found, bool(answer["cached"])

    def _performed(self, request: Mapping[str, Any], work: Work) -> tuple[worker.Answer, str]:
        """The answer to a request, and the worker's name; what that one could not get is sent again, to another.

        What is sent may have other bytes by now, and the request with it.
        """
        kind, task = work.action.kind, request["task"]
        answer, name = self._answer(worker.perform, request, task, kind)
        if not _not_as_here(answer, work.workspace) or self._is_alone(work.workspace):
            return answer, name
        work.log(f"worker {name} {answer['message']}; it is sent again")
        self._send_again(answer["missing"], work)
        if any(local_if_fetched(artifact).content != artifact.content for artifact in work.artifacts.values()):
            return answer, name
        return self._answer(worker.perform, request, f"{task}-again", kind, without=name)

    def _send_again(self, missing: Container[str], work: Work) -> None:
        """Send what a worker could not get, after it was made again where it is not to be had here either."""
        workspace = work.workspace
        consumed = [artifact.key for artifact in work.artifacts.values() if artifact.key in missing and artifact.files]
        sent = [self._sent_file(name, path, work) for name, path in work.action.files.items()]
        for key in [*consumed, *(key for key in sent if key in missing)]:
            found = workspace.store.find(key)
            if found is not None and workspace.remote is not None:
                workspace.remote.send_again(found)
        workspace.flush(keys=missing)

    def _unseen(self, answer: worker.Answer, name: str, work: Work) -> tuple[Artifact, bool]:
        """What a worker made, and this machine does not see. Raises PipelineError where that is how they are set up."""
        workspace, own = work.workspace, worker.remote_of(work.workspace)
        why = workspace.fetch_error(work.key)
        if not why and own and answer["remote"] == own:
            why = f"the remote store {own} has it not"
        if not why:
            message = f"{work.action.kind}: worker {name} made it, but this machine sees it nowhere"
            raise PipelineError(message, hint=f"they share neither a store nor a remote store: {_SHARED}")
        work.log(f"worker {name} made it, but {why}; the stage runs here")
        self._is_alone(workspace)
        return self._make_here(work)

    def _is_alone(self, workspace: Workspace) -> bool:
        """Whether the remote store, which workers and this machine had in common, is given up here."""
        self._alone |= workspace.remote is not None and workspace.remote.is_disabled
        return self._alone

    def _make_here(self, work: Work) -> tuple[Artifact, bool]:
        """Make it in this process, as many at once as there are cores."""
        # While it runs it may hold what those need that bring what it reads.
        work = work.with_local_artifacts()
        with self._own:
            return Local().make(work)

    def remote_calls(self, tools: Mapping[str, Tool]) -> Begin | None:
        """As Executor says."""
        looked_up = Tools(current_project().root / ".firmline" / "tools.json")
        self._code = own_code()
        needs = {
            "pipeline": digest_of(PIPELINE),
            "code": digest_of(self._code),
            "tools": [asdict(tool) for tool in tools.values()],
            "versions": {name: looked_up.identify(tool).version for name, tool in tools.items()},
        }
        return lambda function, values: self._begin(function, values, needs)

    def _begin(self, function: str, values: tuple[Any, ...], needs: Mapping[str, Any]) -> Callable[[], Any]:
        task = f"{function.rpartition(':')[2]}-{uuid.uuid4().hex}"
        data, targets = written(values)
        request = {"function": function, "values": data, "plug-ins": plug_in_code(targets, current_project()), **needs}
        future = self._submit(worker.measure, request, task)

        def result() -> Any:
            answer, name = self._gathered(future, "measuring")
            if "error" in answer:
                self._raise(answer, name, "measuring", None)
            return pickle.loads(answer["result"])

        return result

    def close(self) -> None:
        """As Executor says."""
        with contextlib.suppress(Exception):
            self._client.close(timeout=5)
        if self._cluster is not None:
            self._cluster.close()

    def _submit(self, function: Callable[..., Any], request: Any, task: str, without: str = "") -> Future:
        others = []
        if without:
            known = self._client.scheduler_info(n_workers=-1)["workers"]
            others = [address for address, one in known.items() if str(one["name"]) != without]
        # Where none of the others is left any will do.
        among = {"workers": others, "allow_other_workers": True} if others else {}
        return self._client.submit(_on_worker, function, request, key=task, pure=False, **among)

    def _answer(
        self, function: Callable[..., Any], request: Any, task: str, kind: str, without: str = ""
    ) -> tuple[worker.Answer, str]:
        """What a worker answers, and its name: another than `without`, if there is one."""
        return self._gathered(self._submit(function, request, task, without), kind)

    def _gathered(self, future: Future, kind: str) -> tuple[worker.Answer, str]:
        try:
            answer, name = future.result()
        except KilledWorker as error:
            message = f"{kind}: workers die of it, the last was {error.last_worker.address}"
            raise PipelineError(message, hint="its memory may not do; the worker's log tells more") from error
        except Exception as error:
            raise PipelineError(f"{kind}: {self._shown} gave it up: {type(error).__name__}: {error}") from error
        return answer, name

    def _raise(self, answer: worker.Answer, name: str, kind: str, work: Work | None) -> NoReturn:
        for line in answer.get("traceback", "").splitlines():
            if work is not None:
                work.log(line)
        if answer["error"] == "stage":
            raise StageError(answer["message"], hint=answer["hint"], at=tuple(answer["at"]))
        if answer["error"] == "crash":
            raise StageCrashed(kind, answer["message"], work.log_name if work is not None else "")
        if answer["error"] == "lost":
            raise PipelineError(f"{kind}: worker {name} {answer['message']}", hint=_SHARED)
        if answer["error"] == "refused":
            raise _refused(kind, name, answer["message"])
        if answer["error"] == "differs":
            raise _refused(kind, name, told(differences(answer, {"code": self._code})) or "its code changed")
        raise PipelineError(f"{answer['message']} (on worker {name})", hint=answer["hint"])

    def _share(self, artifact: Artifact, workspace: Workspace) -> None:
        """Have the workers see an artifact that is in this machine's store."""
        with self._lock:
            # Another thread that finds it here has to find it on its way too.
            if artifact.key not in self._shared and ORIGIN not in artifact.manifest:
                workspace.share(artifact)
            self._shared.add(artifact.key)

    def _sent_file(self, name: str, path: Path, work: Work) -> str:
        """The key under which workers find a file of the recipe's. Raises InputChanged, StoreError."""
        workspace, kind = work.workspace, work.action.kind
        digest, shown = work.action.ingredients["files"][name], workspace.planner.display_path(path)

        def write(out: Path, _: Callable[[str], None]) -> None:
            if copy_with_digest(path, out / path.name, kind, shown) != digest:
                workspace.planner.digests.forget(path)
                raise InputChanged(kind, shown, "after the run was planned")

        ingredients = {"stage": _FILE, "name": path.name, "sha256": digest}
        artifact, _ = workspace.store.make(ingredients, write, recipe="")
        self._share(artifact, workspace)
        return artifact.key

    def _hear(self, event: tuple[float, Any]) -> None:
        said = event[1]
        progress = self._waiting.get(said.get("task", ""))
        if progress is not None:
            progress(said["message"], said["fraction"])


def _not_as_here(answer: worker.Answer, workspace: Workspace) -> bool:
    """Whether a worker has what it reads with other bytes, or not, though it asks the remote store of this machine."""
    if answer.get("error") == "other":
        return True
    return answer.get("error") == "lost" and answer["remote"] == worker.remote_of(workspace) != ""


def _options(action: Action) -> dict[str, Any]:
    """A stage's options by their names: their class may be one that was made for the recipe."""
    return {name: getattr(action.config, name) for name in action.stage.config.model_fields}


def _on_worker(function: Callable[[Any], worker.Answer], request: Any) -> tuple[worker.Answer, str]:
    return function(request), str(get_worker().name)


def _refused(kind: str, name: str, what: str) -> PipelineError:
    hint = "workers need this machine's code and tools, and a store that both see: docs/how-to/distributed.md"
    return PipelineError(f"{kind}: worker {name} would make something else: {what}", hint=hint)
