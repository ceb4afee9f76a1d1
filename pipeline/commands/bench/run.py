"""Runs cases, one after another or several side by side; a case that fails ends nothing but itself.

Side by side they run in processes: TVM has state that its threads would share.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.commands.bench.cases import Case
from pipeline.commands.bench.record import Record, record_of
from pipeline.errors import PipelineError, first_line
from pipeline.keys.package_groups import install_group
from pipeline.project import Project, project_of
from pipeline.runs.executor import Executor
from pipeline.terminal.progress import ProgressDisplay

Runner = Callable[[Case], "dict[str, Any] | None"]


@dataclass(frozen=True)
class Outcome:
    """What became of a case: its record, or the `error` in full; neither when the case is skipped."""

    case: Case
    record: Record | None = None
    error: str = ""

    @property
    def failed(self) -> bool:
        """Whether the case ran and did not end well."""
        return bool(self.error)

    @property
    def first_line(self) -> str:
        """The error's first line, or why the case was skipped."""
        return self.error.strip().splitlines()[0] if self.error else self.case.skipped


def run_cases(cases: Iterable[Case], run: Runner, tell: Callable[[Outcome], None], jobs: int = 1) -> list[Outcome]:
    """Run cases and give their outcomes, in the order of `cases`; `tell` hears of each as soon as it is known.

    `run` gives a case's report; it is called from `jobs` threads.
    """

    def one(case: Case) -> Outcome:
        outcome = _run(case, run)
        tell(outcome)
        return outcome

    if jobs <= 1:
        return [one(case) for case in cases]
    pool = ThreadPoolExecutor(jobs)
    try:
        return list(pool.map(one, cases))
    finally:
        # After Ctrl-C, what has not begun is not begun.
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def recipe_runner(
    root: Path | Project, display: ProgressDisplay, jobs: int, executor: Executor | None = None
) -> Iterator[Runner]:
    """A runner that runs a case's recipe: in this process, or in one of `jobs` processes when there are several.

    An executor that runs stages elsewhere is asked from this process.
    """
    if jobs <= 1 or (executor is not None and executor.width):
        yield lambda case: _run_recipe(case, root, _CaseDisplay(case, display), executor)
        return
    with ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        # Ctrl-C reaches all processes of a terminal; this one stops the others.
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    ) as pool:

        def run(case: Case) -> dict[str, Any] | None:
            display.progress("", case.title, "runs", None)
            with _interrupts_held():
                future = pool.submit(_in_process, case, root)
            report, error = future.result()
            if error:
                raise PipelineError(error)
            return report

        try:
            yield run
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process that this thread starts meanwhile is not interrupted while it has not come to its initializer."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _CaseDisplay:
    """One moving line per case instead of one per stage."""

    def __init__(self, case: Case, display: ProgressDisplay) -> None:
        self._title, self._display = case.title, display

    def progress(self, recipe: str, kind: str, message: str, fraction: float | None) -> None:
        """A stage of the case says what it is doing."""
        self._display.progress("", self._title, f"{kind}: {message}", fraction)


def _in_process(case: Case, root: Path | Project) -> tuple[dict[str, Any] | None, str]:
    """Report and error message: the pipeline's exceptions do not travel between processes."""
    try:
        return _run_recipe(case, root, None), ""
    except Exception as error:
        return None, _message(error)


def _run_recipe(
    case: Case, root: Path | Project, display: _CaseDisplay | None, executor: Executor | None = None
) -> dict[str, Any] | None:
    from pipeline.api import run_recipe

    assert case.recipe is not None
    build = project_of(root).root / "build" / "bench"
    return run_recipe(
        case.recipe, root=root, build=build, display=display, install=install_group, executor=executor
    ).report


def _message(error: Exception) -> str:
    return str(error) if isinstance(error, PipelineError) else f"unexpected {type(error).__name__}: {first_line(error)}"


def _run(case: Case, run: Runner) -> Outcome:
    if case.recipe is None:
        return Outcome(case)
    try:
        report = run(case)
    except Exception as error:
        # One broken row must not hide the figures of the others.
        return Outcome(case, error=_message(error))
    if report is None:
        return Outcome(case, error="the run left no report")
    if report["verify"] is None:
        return Outcome(case, error="the recipe leaves out verify")
    record = record_of(case, report)
    wrong = record.verify["mismatches"]
    if wrong:
        checked = record.verify["outputs_checked"]
        return Outcome(case, record, f"not exact: {wrong:,} of {checked:,} output values differ")
    return Outcome(case, record)
