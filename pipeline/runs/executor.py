"""The executor of stages: this process, or workers (pipeline.distributed)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.artifacts.digest import digest_of
from pipeline.artifacts.store import READ, Artifact
from pipeline.keys.planner import Action, Planner
from pipeline.plugins.importing import declare_operators
from pipeline.project import Project
from pipeline.runs.cache import StoreCache
from pipeline.runs.input_guard import InputGuard
from pipeline.runs.worker_artifacts import local_artifact
from stages.base import Cache, Job, Tool
from stages.support.messages import escape

if TYPE_CHECKING:
    from pipeline.runs.workspace import Workspace
    from stages.count.parallel import Begin

# InputGuard by a running stage that is `exclusive`.
_EXCLUSIVE = threading.Lock()


@dataclass(frozen=True)
class Work:
    """An action to run.

    artifacts       consumed artifacts, by kind
    ingredients     all ingredients of `key`
    shared          whether other machines may make and see the artifact
    force           make it even if it exists
    convert_errors  context that turns a stage's exceptions into errors at their place in the recipe
    log             writes a line to the run's log.txt
    log_name        name of log.txt in messages
    progress        shows what the stage does, and how far it is
    """

    action: Action
    artifacts: Mapping[str, Artifact]
    ingredients: Mapping[str, Any]
    key: str
    workspace: Workspace
    shared: bool
    force: bool
    convert_errors: Callable[[], AbstractContextManager[None]]
    log: Callable[[str], None]
    log_name: str
    progress: Callable[..., None]

    def with_local_artifacts(self) -> Work:
        """Return the same work with all artifacts fetched to this machine. Raises PipelineError."""
        artifacts = {kind: local_artifact(artifact) for kind, artifact in self.artifacts.items()}
        ingredients = self.action.consuming({kind: artifact.content for kind, artifact in artifacts.items()})
        return replace(self, artifacts=artifacts, ingredients=ingredients, key=digest_of(ingredients))


class Executor(Protocol):
    """Runs actions. Methods may be called from several threads."""

    @property
    def max_parallel(self) -> int:
        """The number of stages that it runs in parallel; 0 if the command line decides."""

    def make(self, work: Work) -> tuple[Artifact, bool]:
        """Return the artifact, in the workspace's store, and whether it existed before.

        Raises PipelineError, and the errors of `convert_errors`.
        """

    def remote_calls(self, tools: Mapping[str, Tool]) -> Begin | None:
        """Return a function that starts calls on workers (stages.count.parallel).

        None if calls must run in this process. The calls raise PipelineError and StageError, also for workers whose
        tools differ from `tools`.
        """

    def close(self) -> None:
        """Release the executor's resources."""


class Local:
    """Runs actions in this process."""

    max_parallel = 0

    def make(self, work: Work) -> tuple[Artifact, bool]:
        """See Executor."""
        work = work.with_local_artifacts()

        def write(out: Path, keep: Callable[[str], None]) -> None:
            work.log(f"runs; key {work.key}")
            with work.convert_errors():
                run_stage(
                    work.action,
                    work.artifacts,
                    work.workspace.planner,
                    work.workspace.project,
                    out,
                    log=stage_logger(keep, work.log),
                    progress=work.progress,
                    cache=StoreCache(work.workspace, work.action.recipe),
                )

        return work.workspace.store.make(
            work.ingredients,
            write,
            recipe=work.action.recipe,
            force=work.force,
            shared=work.shared,
            waiting=lambda: work.progress("waits for another run that makes the same artifact"),
        )

    def remote_calls(self, tools: Mapping[str, Tool]) -> Begin | None:
        """See Executor."""
        return None

    def close(self) -> None:
        """See Executor."""


def stage_logger(keep: Callable[[str], None], *others: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that writes a stage's lines to the artifact's log and to `others`."""

    def log(line: str) -> None:
        keep("\n".join(map(escape.log_line, line.split("\n"))))
        for other in others:
            other(line)

    return log


def run_stage(
    action: Action,
    artifacts: Mapping[str, Artifact],
    planner: Planner,
    project: Project,
    out: Path,
    *,
    log: Callable[[str], None],
    progress: Callable[..., None],
    cache: Cache | None = None,
) -> None:
    """Run a stage in this process on guarded inputs; it writes to `out`. Raises its errors.

    Exceptions that would end the process, such as SystemExit, become RuntimeError.
    """
    declare_operators(project)
    alone = _EXCLUSIVE if action.stage.exclusive else contextlib.nullcontext()
    with alone, InputGuard(action, artifacts, planner).running(out.with_name(READ)) as files:
        job = Job(
            config=action.config,
            model=action.model,
            target=action.target,
            inputs={kind: artifact.files for kind, artifact in artifacts.items()},
            out=out,
            files=files,
            tools=action.tools,
            progress=progress,
            log=log,
            cache=cache,
        )
        try:
            action.stage.run(job)
        except SystemExit as error:
            raise RuntimeError(f"ends the program: sys.exit({error.code!r})").with_traceback(
                error.__traceback__
            ) from None
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__) from None
