"""Where a stage runs: here, or on another machine (pipeline.distributed)."""

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
from pipeline.runs.elsewhere import here
from pipeline.runs.held import Held
from stages.base import Cache, Job, Tool
from stages.messages import escape

if TYPE_CHECKING:
    from pipeline.runs.workspace import Workspace
    from stages.count.side_work import Begin

# Held by a running stage that is `exclusive`.
_EXCLUSIVE = threading.Lock()


@dataclass(frozen=True)
class Work:
    """An action that has to run.

    artifacts    those that it consumes, by kind
    ingredients  those of its `key`, all of them
    shared       whether other machines may make it, and see it
    force        make it though it is there
    failures     turns what a stage raises into the pipeline's errors, at their place in the recipe
    log          takes a line for the run's log.txt
    log_name     how messages call that
    progress     takes what the stage is doing, and how far it is
    """

    action: Action
    artifacts: Mapping[str, Artifact]
    ingredients: Mapping[str, Any]
    key: str
    workspace: Workspace
    shared: bool
    force: bool
    failures: Callable[[], AbstractContextManager[None]]
    log: Callable[[str], None]
    log_name: str
    progress: Callable[..., None]

    def here(self) -> Work:
        """The same of what this machine's store has: artifacts that are elsewhere come here. Raises PipelineError."""
        artifacts = {kind: here(artifact) for kind, artifact in self.artifacts.items()}
        ingredients = self.action.consuming({kind: artifact.content for kind, artifact in artifacts.items()})
        return replace(self, artifacts=artifacts, ingredients=ingredients, key=digest_of(ingredients))


class Executor(Protocol):
    """Runs actions. Methods may be called from several threads."""

    @property
    def width(self) -> int:
        """How many stages it runs side by side; 0 where that is for the command line to say."""

    def make(self, work: Work) -> tuple[Artifact, bool]:
        """The artifact, in the workspace's store, and whether it was there already.

        Raises PipelineError, and what `failures` makes of what the stage raised.
        """

    def beginning(self, tools: Mapping[str, Tool]) -> Begin | None:
        """Begins to call functions of the stages elsewhere (stages.count.side_work), where these tools are as here.

        None where they are to be called in this process. What it gives raises PipelineError, and StageError.
        """

    def close(self) -> None:
        """End what was begun for it."""


class Local:
    """Runs them in this process."""

    width = 0

    def make(self, work: Work) -> tuple[Artifact, bool]:
        """As Executor says."""
        work = work.here()

        def write(out: Path, keep: Callable[[str], None]) -> None:
            work.log(f"runs; key {work.key}")
            with work.failures():
                run_stage(
                    work.action,
                    work.artifacts,
                    work.workspace.planner,
                    work.workspace.project,
                    out,
                    log=logging_to(keep, work.log),
                    progress=work.progress,
                    cache=StoreCache(work.workspace, work.action.recipe),
                )

        return work.workspace.store.make(
            work.ingredients,
            write,
            recipe=work.action.recipe,
            force=work.force,
            shared=work.shared,
            waiting=lambda: work.progress("waits for another run that makes the same"),
        )

    def beginning(self, tools: Mapping[str, Tool]) -> Begin | None:
        """As Executor says."""
        return None

    def close(self) -> None:
        """As Executor says."""


def logging_to(keep: Callable[[str], None], *others: Callable[[str], None]) -> Callable[[str], None]:
    """What takes a stage's lines: `keep`, which puts them beside the artifact, and others."""

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
    """Run a stage in this process, on what its key says, into the folder `out`. Raises what it raises.

    What is no Exception but would end the process, as sys.exit, is raised as RuntimeError.
    """
    declare_operators(project)
    alone = _EXCLUSIVE if action.stage.exclusive else contextlib.nullcontext()
    with alone, Held(action, artifacts, planner).running(out.with_name(READ)) as files:
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
