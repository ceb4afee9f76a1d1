"""doit's reporter: a line per stage, errors on stderr, the report's table."""

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
from stages.support.messages import escape

# Columns for the kind of a stage.
_WIDTH = 12
# Results of the last run's recipes, for `doit run --json`.
results_json: list[dict[str, Any]] = []


@dataclass(frozen=True)
class TaskInfo:
    """A task of pipeline.commands.tasks, for the reporter.

    `kind` and `identity` are a stage's, '' for the task that fills the build folder. `session` is None for a
    recipe that cannot be planned, if it is one of several or of a `matrix`.
    """

    recipe: str
    session: Session | None = None
    kind: str = ""
    identity: str = ""
    matrix: MatrixRun | None = None


class StageReporter:
    """Prints the progress of pipeline.commands.tasks' tasks, which have a `TaskInfo` as `meta`."""

    desc = "one line per stage, and the report's table"

    def __init__(self, outstream: TextIO, options: Mapping[str, Any] | None = None) -> None:
        self.display = ProgressDisplay(outstream)
        self._errors: list[str] = []
        self._recipes: set[str] = set()
        self._sessions: list[Session] = []
        self._matrices: list[MatrixRun] = []

    def initialize(self, tasks: Mapping[str, Any], selected_tasks: list[str]) -> None:
        """Start; doit calls this before the first task."""
        for task in tasks.values():
            shown = _shown(task)
            if shown is not None and shown.matrix is None:
                self._recipes.add(shown.recipe)
            if shown is not None and shown.session is not None:
                shown.session.display = self.display
                self._sessions.append(shown.session)

    def get_status(self, task: Any) -> None:
        """Do nothing; doit calls this before it checks a task."""

    def execute_task(self, task: Any) -> None:
        """Show that a task starts."""
        shown = _shown(task)
        if shown is not None and shown.kind:
            self.display.progress(shown.recipe, shown.kind, "starts", None)

    def add_success(self, task: Any) -> None:
        """Print the line of a finished task."""
        shown = _shown(task)
        if shown is not None and shown.kind:
            self._stage(shown)
        elif shown is not None and shown.matrix is not None:
            self._member(shown, shown.matrix)
        elif shown is not None and shown.session is not None:
            session = shown.session
            show_end(self.display, session.plan, session.report, session.workspace.display_path(session.folder))

    def skip_uptodate(self, task: Any) -> None:
        """Print the line of a cached stage."""
        shown = _shown(task)
        if shown is not None and shown.kind:
            self._stage(shown)

    def skip_ignore(self, task: Any) -> None:
        """Print that doit ignores a task."""
        self.display.line(f"  {task.name} ignored")

    def add_failure(self, task: Any, fail: Any) -> None:
        """Note a failed task, or one that cannot run because another failed."""
        shown = _shown(task)
        if shown is not None and shown.kind:
            self.display.end(shown.recipe, shown.kind)
        is_cause = not isinstance(fail, UnmetDependency)
        if not is_cause:
            # doit would count tasks after a failure as errors and exit with 2 instead of 1.
            fail.__class__ = TaskFailed
        else:
            message = fail.message.rstrip() + "".join(["\n", *fail.traceback] if fail.traceback else [])
            named = shown is not None and (shown.matrix is not None or len(self._recipes) > 1)
            self._errors.append(f"{shown.recipe}: {message}" if shown is not None and named else message)
        if shown is not None and shown.matrix is not None:
            if is_cause:
                shown.matrix.failed(shown.identity or shown.recipe, fail.message.rstrip())
            if not shown.kind:
                self._member(shown, shown.matrix)

    def cleanup_error(self, exception: Any) -> None:
        """Note an error of a task's teardown."""
        self._errors.append(exception.get_msg())

    def runtime_error(self, msg: str) -> None:
        """Note an error of doit."""
        self._errors.append(msg)

    def teardown_task(self, task: Any) -> None:
        """Do nothing; doit calls this when a teardown starts."""

    def complete_run(self) -> None:
        """Finish uploads, close sessions, write matrix tables and print the errors."""
        for workspace in {id(session.workspace): session.workspace for session in self._sessions}.values():
            self._send(workspace)
        self.display.close()
        results_json[:] = map(_record, {id(session): session for session in self._sessions}.values())
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
        """Wait until the remote store has the new artifacts, and print the traffic."""
        if interrupted() or workspace.opened_remote is None:
            return
        show = partial(self.display.progress, "", "remote")
        workspace.flush(lambda count: show(f"sends {count} artifact{'s' if count > 1 else ''}"))
        self.display.end("", "remote")
        if moved := str(workspace.opened_remote.traffic):
            self.display.line(f"{workspace.opened_remote.settings.shown}: {moved}")

    def _member(self, shown: TaskInfo, matrix: MatrixRun) -> None:
        """Print the result of a matrix's variant."""
        if matrix not in self._matrices:
            self._matrices.append(matrix)
        self.display.line(matrix.line(shown.recipe))
        done, total = matrix.ended
        self.display.progress(matrix.name, "matrix", f"{done} of {total} recipes", done / total)

    def _stage(self, shown: TaskInfo) -> None:
        recipe = shown.recipe
        self.display.end(recipe, shown.kind)
        result = shown.session.results.get(shown.kind) if shown.session is not None else None
        if result is not None and shown.matrix is None:
            several = len(self._recipes) > 1
            name = f"{recipe}:{shown.kind}" if several else shown.kind
            width = max(map(len, self._recipes)) + _WIDTH if several else _WIDTH
            same = shown.session is not None and shown.kind in shown.session.unchanged
            note = "   from the remote store" if result.remote else "   same bytes as before" if same else ""
            self.display.line(stage_line(name, result, width) + note)


def stage_line(name: str, result: StageResult, width: int = _WIDTH) -> str:
    """Return a stage's line: name, `ran` or `cached`, seconds of its run, key."""
    return f"  {name:{width}} {'cached' if result.cached else 'ran':6} {result.seconds:7.1f} s   {result.key[:12]}"


def show_end(display: ProgressDisplay, plan: Plan, report: dict[str, Any] | None, folder: str) -> None:
    """Print the stages' tables of the report, and the name of the build folder."""
    for action in plan:
        if report is not None and type(action.stage).render is not Stage.render:
            display.show(partial(action.stage.render, report))
    display.line(f"{folder}/")


def _record(session: Session) -> dict[str, Any]:
    """Return a recipe's JSON record: report ('' if this run has none) and finished stages."""
    stages = [vars(session.results[action.kind]) for action in session.plan if action.kind in session.results]
    place = session.workspace.display_path(session.folder / "report.json") if session.report is not None else ""
    return {"recipe": session.plan.recipe, "target": session.plan.target, "report": place, "stages": stages}


def _shown(task: Any) -> TaskInfo | None:
    return task.meta.get("shown") if task.meta else None
