"""Run a recipe from Python."""

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
    """Result of a run.

    folder: the build folder.
    artifacts: read-only output folder of each requested stage.
    report: content of report.json; None if the run ended before the stage report.
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
    record: bool = True,
) -> RunResult:
    """Run a recipe and return its artifacts and report.

    recipe: a name, a path, or a dictionary with the content of a recipe file.
    overrides: values of the command line: target, model, set.
    until: last stage to run. Tools of later stages may be missing, and the build folder gets log.txt only.
    root: the project; default: the current directory's.
    store, build: folders of the artifact store and the results; default: the project's.
    display: receives progress; default: none.
    install: installs a missing group of Python packages and returns whether it did (pipeline.keys.package_groups).
        Without it a missing group is an error.
    record: note the run for `doit explain`; False for a command that changes the recipe's options itself.
    executor: runs the stages (pipeline.runs.executor); default: this process.

    Raises PipelineError. A StageFailed is also a StageError, with the message and hint of the stage.
    """
    with Workspace(root=root, registry=registry, store=store, build=build, install=install) as workspace:
        session = Session(workspace, workspace.plan(recipe, overrides, until), display, until, executor, record=record)
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
