"""Running a recipe from Python, as tests and scripts do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.plugins.registry import Registry
from pipeline.project import Project
from pipeline.runs.executor import Executor
from pipeline.runs.session import Display, Session, StageResult
from pipeline.runs.workspace import Workspace


@dataclass(frozen=True)
class RunResult:
    """What a run left.

    `artifacts` maps each stage that was asked for to the (read-only) folder of what it wrote; `folder` is the build
    folder; `report` is the content of report.json, None when the run ended before the report.
    """

    recipe: str
    target: str
    folder: Path
    artifacts: Mapping[str, Path]
    stages: tuple[StageResult, ...]
    report: dict[str, Any] | None


def run_recipe(
    recipe: str | Path | Mapping[str, Any],
    overrides: Mapping[str, str] | None = None,
    *,
    until: str = "",
    root: Path | Project | None = None,
    registry: Registry | None = None,
    store: Path | None = None,
    build: Path | None = None,
    display: Display | None = None,
    install: Callable[[str], bool] | None = None,
    executor: Executor | None = None,
) -> RunResult:
    """Run a recipe given by name, path or dictionary.

    `overrides` are those of the command line: target, model, set. `until` is the last stage to run: tools of later ones
    need not be there, and the build folder gets log.txt only. `root` is the project, by default that of the current
    directory; `store` and `build` default to its own. `install` is asked to install a group of Python packages that is
    missing, and says whether it did (pipeline.keys.groups); without, that is an error. `executor` says where stages run
    (pipeline.runs.executor); here unless given. Raises PipelineError; a
    StageFailed is also a StageError, with the stage's own message and hint.
    """
    with Workspace(
        root=root, registry=registry, store=store, build=build, install=install, executor=executor
    ) as workspace:
        session = Session(workspace, workspace.plan(recipe, overrides, until), display, until)
        try:
            for action in session.plan:
                if not session.is_done(action):
                    session.run(action)
            if not until:
                session.publish()
        finally:
            session.close()
        artifacts, stages = session.folders, tuple(session.results.values())
        return RunResult(session.plan.recipe, session.plan.target, session.folder, artifacts, stages, session.report)
