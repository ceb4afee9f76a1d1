"""doit's reporter: one line per stage, errors of one to five lines on stderr, the report's table at the end."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TextIO

from doit.exceptions import TaskFailed, UnmetDependency

from pipeline.keys.planner import Plan
from pipeline.process.interruption import interrupted
from pipeline.runs.session import Session, StageResult
from pipeline.runs.workspace import Workspace
from pipeline.terminal.matrix_run import MatrixRun
from pipeline.terminal.progress import ProgressDisplay
from stages.base import Stage
from stages.messages import escape

# Columns for the kind of a stage.
_WIDTH = 12
# What the recipes of this process came to, for `doit run --json`; the last run's.
ended: list[dict[str, Any]] = []


@dataclass(frozen=True)
class Shown:
    """What a task of pipeline.commands.tasks is, for the reporter.

    `kind` and `identity` are the stage's, '' for the task that fills the build folder. `session` is None for a
    recipe that cannot be planned, one of several or of a `matrix`.
    """

    recipe: str
    session: Session | None = None
    kind: str = ""
    identity: str = ""
    matrix: MatrixRun | None = None


class StageReporter:
    """Prints what happens to the tasks of pipeline.commands.tasks, which carry a `Shown` as doit's `meta`."""

    desc = "one line per stage, and the report's table"

    def __init__(self, outstream: TextIO, options: Mapping[str, Any] | None = None) -> None:
        self.display = ProgressDisplay(outstream)
        self._errors: list[str] = []
        self._recipes: set[str] = set()
        self._sessions: list[Session] = []
        self._matrices: list[MatrixRun] = []

    def initialize(self, tasks: Mapping[str, Any], selected_tasks: list[str]) -> None:
        """Called by doit before the first task."""
        for task in tasks.values():
            shown = _shown(task)
            if shown is not None and shown.matrix is None:
                self._recipes.add(shown.recipe)
            if shown is not None and shown.session is not None:
                shown.session.display = self.display
                self._sessions.append(shown.session)

    def get_status(self, task: Any) -> None:
        """Called when doit looks whether a task is up to date."""

    def execute_task(self, task: Any) -> None:
        """Called when a task starts."""
        shown = _shown(task)
        if shown is not None and shown.kind:
            self.display.progress(shown.recipe, shown.kind, "starts", None)

    def add_success(self, task: Any) -> None:
        """Called when a task ran."""
        shown = _shown(task)
        if shown is not None and shown.kind:
            self._stage(shown)
        elif shown is not None and shown.matrix is not None:
            self._member(shown, shown.matrix)
        elif shown is not None and shown.session is not None:
            session = shown.session
            show_end(self.display, session.plan, session.report, session.workspace.display_path(session.folder))

    def skip_uptodate(self, task: Any) -> None:
        """Called when the store has what a task would make."""
        shown = _shown(task)
        if shown is not None and shown.kind:
            self._stage(shown)

    def skip_ignore(self, task: Any) -> None:
        """Called for a task that the user told doit to ignore."""
        self.display.line(f"  {task.name} ignored")

    def add_failure(self, task: Any, fail: Any) -> None:
        """Called when a task failed, or cannot run because another failed."""
        shown = _shown(task)
        if shown is not None and shown.kind:
            self.display.end(shown.recipe, shown.kind)
        own = not isinstance(fail, UnmetDependency)
        if not own:
            # doit would count what a failure leaves undone as an error of its own, and end with 2 instead of 1.
            fail.__class__ = TaskFailed
        else:
            message = fail.message.rstrip() + "".join(["\n", *fail.traceback] if fail.traceback else [])
            named = shown is not None and (shown.matrix is not None or len(self._recipes) > 1)
            self._errors.append(f"{shown.recipe}: {message}" if shown is not None and named else message)
        if shown is not None and shown.matrix is not None:
            if own:
                shown.matrix.failed(shown.identity or shown.recipe, fail.message.rstrip())
            if not shown.kind:
                self._member(shown, shown.matrix)

    def cleanup_error(self, exception: Any) -> None:
        """Called when a task's teardown fails."""
        self._errors.append(exception.get_msg())

    def runtime_error(self, msg: str) -> None:
        """Called for an error of doit itself."""
        self._errors.append(msg)

    def teardown_task(self, task: Any) -> None:
        """Called when a task's teardown starts."""

    def complete_run(self) -> None:
        """Called at the end."""
        for workspace in {id(session.workspace): session.workspace for session in self._sessions}.values():
            self._send(workspace)
        self.display.close()
        ended[:] = map(_record, {id(session): session for session in self._sessions}.values())
        for session in self._sessions:
            session.close()
        for matrix in [] if interrupted() else self._matrices:
            try:
                matrix.end(self.display)
            except OSError as error:
                self._errors.append(f"{matrix.name}: the table cannot be written: {error.strerror}")
        for message in self._errors:
            sys.stderr.write(f"ERROR: {escape.message(message)}\n")

    def _send(self, workspace: Workspace) -> None:
        """Wait until the remote store has what was made, and say what moved."""
        if interrupted() or workspace.opened_remote is None:
            return
        tell = partial(self.display.progress, "", "remote")
        workspace.flush(lambda left: tell(f"sends {left} artifact{'s' if left > 1 else ''}"))
        self.display.end("", "remote")
        if moved := str(workspace.opened_remote.tally):
            self.display.line(f"{workspace.opened_remote.settings.shown}: {moved}")

    def _member(self, shown: Shown, matrix: MatrixRun) -> None:
        """A variant of a matrix is done, or failed."""
        if matrix not in self._matrices:
            self._matrices.append(matrix)
        self.display.line(matrix.line(shown.recipe))
        done, whole = matrix.ended
        self.display.progress(matrix.name, "matrix", f"{done} of {whole} recipes", done / whole)

    def _stage(self, shown: Shown) -> None:
        recipe = shown.recipe
        self.display.end(recipe, shown.kind)
        result = shown.session.results.get(shown.kind) if shown.session is not None else None
        if result is not None and shown.matrix is None:
            several = len(self._recipes) > 1
            name = f"{recipe}:{shown.kind}" if several else shown.kind
            width = max(map(len, self._recipes)) + _WIDTH if several else _WIDTH
            same = shown.session is not None and shown.kind in shown.session.unchanged
            note = "   from the remote" if result.remote else "   same bytes as before" if same else ""
            self.display.line(stage_line(name, result, width) + note)


def stage_line(name: str, result: StageResult, width: int = _WIDTH) -> str:
    """One stage's line: its name, whether it ran, how long it took when it ran, its key."""
    return f"  {name:{width}} {'cached' if result.cached else 'ran':6} {result.seconds:7.1f} s   {result.key[:12]}"


def show_end(display: ProgressDisplay, plan: Plan, report: dict[str, Any] | None, folder: str) -> None:
    """Print what the stages have to show of the report, and the name of the build folder."""
    for action in plan:
        if report is not None and type(action.stage).render is not Stage.render:
            display.show(partial(action.stage.render, report))
    display.line(f"{folder}/")


def _record(session: Session) -> dict[str, Any]:
    """What a recipe came to: its report's place, '' where it has none of this run, and its stages as far as it got."""
    stages = [vars(session.results[action.kind]) for action in session.plan if action.kind in session.results]
    place = session.workspace.display_path(session.folder / "report.json") if session.report is not None else ""
    return {"recipe": session.plan.recipe, "target": session.plan.target, "report": place, "stages": stages}


def _shown(task: Any) -> Shown | None:
    return task.meta.get("shown") if task.meta else None
