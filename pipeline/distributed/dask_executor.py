"""Executor that runs stages as tasks of dask.distributed on workers.

Artifacts are passed by key: both sides read them from a shared store or remote store. If a worker dies, another one
gets its task; finished stages are in the store.
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
from pipeline.distributed.code import PIPELINE, installed_code, plug_in_code
from pipeline.distributed.connection import Connection
from pipeline.distributed.local_cluster import LocalCluster
from pipeline.distributed.machine_differences import differences, in_one_line
from pipeline.distributed.values import dumps
from pipeline.distributed.worker_results import result_of
from pipeline.errors import InputChanged, PipelineError, StageCrashed
from pipeline.keys.planner import Action
from pipeline.keys.tools import Tools
from pipeline.project import current_project
from pipeline.runs.executor import Local, Work
from pipeline.runs.input_guard import copy_with_digest
from pipeline.runs.worker_artifacts import local_if_fetched
from pipeline.runs.workspace import Workspace
from stages.base import StageError, Tool
from stages.support.messages.stage_error import DoesNotFit

if TYPE_CHECKING:
    from stages.count.parallel import Begin

# Timeouts in seconds: for the scheduler, for a first worker.
_CONNECT, _WORKERS = 10, 60
# Tasks per worker thread: one computes while others transfer files.
_AHEAD = 2
_MOST = 512
_SHARED = "set FIRMLINE_REMOTE, or FIRMLINE_STORE to a shared disk: docs/how-to/distributed.md"
_FILE = "file"


class DaskExecutor:
    """Runs stages on a scheduler's workers, or on `processes` local ones (0: one per core)."""

    def __init__(self, scheduler: Connection | None = None, processes: int = 0) -> None:
        # Do not print Dask's messages about workers on the terminal.
        for logger in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]:
            logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
        self._cluster = None if scheduler is not None else LocalCluster(processes or os.cpu_count() or 1)
        connection = self._cluster.connection if self._cluster is not None else scheduler
        assert connection is not None
        self._shown = "the local cluster" if scheduler is None else connection.text
        try:
            self._client = Client(
                connection.address, timeout=_CONNECT, set_as_default=False, security=connection.security
            )
        except Exception as error:
            if self._cluster is not None:
                self._cluster.close()
            raise PipelineError(
                f"executor={connection.text}: no Dask scheduler answers there", hint=connection.hint
            ) from error
        self._topic = f"firmline-{uuid.uuid4().hex}"
        self._waiting: dict[str, Callable[..., None]] = {}
        self._lock = threading.Lock()
        self._shared: set[str] = set()
        # Limits stages in this process; _only_local: the shared remote store failed, so all stages run here.
        self._local_slots = threading.Semaphore(os.cpu_count() or 1)
        self._only_local = False
        self._code = installed_code()
        self._client.subscribe_topic(self._topic, self._on_event)
        self._check_workers()

    def _check_workers(self) -> None:
        """Raise PipelineError if there are no workers, or one has other code than this machine."""
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
                    f"worker {name} is not a worker of Firmline: {answer}", hint="docs/how-to/distributed.md"
                )
            if wrong := differences({"code": answer["code"]}, {"code": self._code}):
                self.close()
                raise _refused("the run", name, in_one_line(wrong))

    @property
    def max_parallel(self) -> int:
        """The number of stages that the workers run and prepare in parallel."""
        threads = sum(self._client.nthreads().values())
        return int(min(max(_AHEAD * threads, 2), _MOST))

    def make(self, work: Work) -> tuple[Artifact, bool]:
        """See Executor."""
        workspace, action = work.workspace, work.action
        if not work.shared:
            return Local().make(work)
        if self._only_local:
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
            "objects": dumps((_options(action), action.model, action.target))[0],
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
            answer, name = self._perform(request, work)
        finally:
            self._waiting.pop(task, None)
        if _can_retry(answer, workspace):
            work.log(f"worker {name} {answer['message']}; the stage runs here")
            return self._make_here(work)
        if "error" in answer:
            with work.convert_errors():
                self._raise(answer, name, action.kind, work)
        result = result_of(name, work, self._make_here, cached=bool(answer["cached"]))
        if result is None:
            return self._make_unseen(answer, name, work)
        self._shared.add(work.key)
        if not answer["cached"]:
            for line in result.log.splitlines():
                work.log(line)
        work.log(f"made by worker {name}")
        return result, bool(answer["cached"])

    def _perform(self, request: Mapping[str, Any], work: Work) -> tuple[worker.Answer, str]:
        """Return a worker's answer and name. If inputs are missing, send them and ask another one.

        Inputs may have other bytes when they are sent again; then the request is outdated and is not repeated.
        """
        kind, task = work.action.kind, request["task"]
        answer, name = self._answer(worker.perform, request, task, kind)
        if not _can_retry(answer, work.workspace) or self._must_run_locally(work.workspace):
            return answer, name
        work.log(f"worker {name} {answer['message']}; sending it again")
        self._send_again(answer["missing"], work)
        if any(local_if_fetched(artifact).content != artifact.content for artifact in work.artifacts.values()):
            return answer, name
        return self._answer(worker.perform, request, f"{task}-again", kind, without=name)

    def _send_again(self, missing: Container[str], work: Work) -> None:
        """Send inputs that a worker could not get; first make those again that are lost here too."""
        workspace = work.workspace
        consumed = [artifact.key for artifact in work.artifacts.values() if artifact.key in missing and artifact.files]
        sent = [self._sent_file(name, path, work) for name, path in work.action.files.items()]
        for key in [*consumed, *(key for key in sent if key in missing)]:
            artifact = workspace.store.find(key)
            if artifact is not None and workspace.remote is not None:
                workspace.remote.send_again(artifact)
        workspace.flush(keys=missing)

    def _make_unseen(self, answer: worker.Answer, name: str, work: Work) -> tuple[Artifact, bool]:
        """Handle an artifact that a worker made but this machine does not see.

        Runs the stage here if the remote store lost it. Raises PipelineError if the machines share no store.
        """
        workspace, remote = work.workspace, worker.remote_of(work.workspace)
        reason = workspace.fetch_error(work.key)
        if not reason and remote and answer["remote"] == remote:
            reason = f"the remote store {remote} does not have it"
        if not reason:
            message = f"{work.action.kind}: worker {name} made the artifact, but it is not in a shared store"
            raise PipelineError(message, hint=f"the machines share no store; {_SHARED}")
        work.log(f"worker {name} made the artifact, but {reason}; the stage runs here")
        self._must_run_locally(workspace)
        return self._make_here(work)

    def _must_run_locally(self, workspace: Workspace) -> bool:
        """Return whether the shared remote store is disabled here."""
        self._only_local |= workspace.remote is not None and workspace.remote.is_disabled
        return self._only_local

    def _make_here(self, work: Work) -> tuple[Artifact, bool]:
        """Run the action in this process, with one per core at most."""
        # Fetch inputs before taking a slot: fetching may run other stages, which need slots.
        work = work.with_local_artifacts()
        with self._local_slots:
            return Local().make(work)

    def remote_calls(self, tools: Mapping[str, Tool]) -> Begin | None:
        """See Executor."""
        tools_here = Tools(current_project().root / ".firmline" / "tools.json")
        self._code = installed_code()
        needs = {
            "pipeline": digest_of(PIPELINE),
            "code": digest_of(self._code),
            "tools": [asdict(tool) for tool in tools.values()],
            "versions": {name: tools_here.identify(tool).version for name, tool in tools.items()},
        }
        return lambda function, values: self._begin(function, values, needs)

    def _begin(self, function: str, values: tuple[Any, ...], needs: Mapping[str, Any]) -> Callable[[], Any]:
        task = f"{function.rpartition(':')[2]}-{uuid.uuid4().hex}"
        data, targets = dumps(values)
        request = {"function": function, "values": data, "plug-ins": plug_in_code(targets, current_project()), **needs}
        future = self._submit(worker.measure, request, task)

        def result() -> Any:
            answer, name = self._result(future, "measuring")
            if "error" in answer:
                self._raise(answer, name, "measuring", None)
            return pickle.loads(answer["result"])

        return result

    def close(self) -> None:
        """See Executor."""
        with contextlib.suppress(Exception):
            self._client.close(timeout=5)
        if self._cluster is not None:
            self._cluster.close()

    def _submit(self, function: Callable[..., Any], request: Any, task: str, without: str = "") -> Future:
        others = []
        if without:
            known = self._client.scheduler_info(n_workers=-1)["workers"]
            others = [address for address, info in known.items() if str(info["name"]) != without]
        # If no other worker is left, any worker may do it.
        among = {"workers": others, "allow_other_workers": True} if others else {}
        return self._client.submit(_on_worker, function, request, key=task, pure=False, **among)

    def _answer(
        self, function: Callable[..., Any], request: Any, task: str, kind: str, without: str = ""
    ) -> tuple[worker.Answer, str]:
        """Run a function on a worker, other than `without` if possible. Returns answer and name."""
        return self._result(self._submit(function, request, task, without), kind)

    def _result(self, future: Future, kind: str) -> tuple[worker.Answer, str]:
        try:
            answer, name = future.result()
        except KilledWorker as error:
            message = f"{kind}: several workers died, the last was {error.last_worker.address}"
            raise PipelineError(message, hint="they may have too little memory; see the worker's log") from error
        except Exception as error:
            raise PipelineError(f"{kind}: {self._shown} cancelled it: {type(error).__name__}: {error}") from error
        return answer, name

    def _raise(self, answer: worker.Answer, name: str, kind: str, work: Work | None) -> NoReturn:
        for line in answer.get("traceback", "").splitlines():
            if work is not None:
                work.log(line)
        if answer["error"] == "stage":
            error = DoesNotFit if answer["does_not_fit"] else StageError
            raise error(answer["message"], hint=answer["hint"], at=tuple(answer["at"]))
        if answer["error"] == "crash":
            raise StageCrashed(kind, answer["message"], work.log_name if work is not None else "")
        if answer["error"] == "lost":
            raise PipelineError(f"{kind}: worker {name} {answer['message']}", hint=_SHARED)
        if answer["error"] == "refused":
            raise _refused(kind, name, answer["message"])
        if answer["error"] == "differs":
            raise _refused(kind, name, in_one_line(differences(answer, {"code": self._code})) or "its code changed")
        raise PipelineError(f"{answer['message']} (on worker {name})", hint=answer["hint"])

    def _share(self, artifact: Artifact, workspace: Workspace) -> None:
        """Send a local artifact to the shared store, unless it was sent before."""
        with self._lock:
            # Under the lock: another thread must not assume it is sent before the transfer starts.
            if artifact.key not in self._shared and ORIGIN not in artifact.manifest:
                workspace.share(artifact)
            self._shared.add(artifact.key)

    def _sent_file(self, name: str, path: Path, work: Work) -> str:
        """Return the key of an external file for workers. Raises InputChanged, StoreError."""
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

    def _on_event(self, event: tuple[float, Any]) -> None:
        progress_event = event[1]
        progress = self._waiting.get(progress_event.get("task", ""))
        if progress is not None:
            progress(progress_event["message"], progress_event["fraction"])


def _can_retry(answer: worker.Answer, workspace: Workspace) -> bool:
    """Return whether a worker lacks inputs of the shared remote store, or has other bytes."""
    if answer.get("error") == "other":
        return True
    return answer.get("error") == "lost" and answer["remote"] == worker.remote_of(workspace) != ""


def _options(action: Action) -> dict[str, Any]:
    """Return a stage's options by name: their class may exist in this process only."""
    return {name: getattr(action.config, name) for name in action.stage.config.model_fields}


def _on_worker(function: Callable[[Any], worker.Answer], request: Any) -> tuple[worker.Answer, str]:
    return function(request), str(get_worker().name)


def _refused(kind: str, name: str, what: str) -> PipelineError:
    hint = "workers need this machine's code and tools, and a store that both see: docs/how-to/distributed.md"
    return PipelineError(f"{kind}: worker {name} would make another result: {what}", hint=hint)
