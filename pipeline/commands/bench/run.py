"""Run cases, one after another or in parallel. A failed case does not stop the others.

Parallel cases run in processes: TVM has state that threads would share.
"""

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
    """The result of a case: its record or its error; neither if it is skipped."""

    case: Case
    record: Record | None = None
    error: str = ""

    @property
    def failed(self) -> bool:
        """Whether the case failed."""
        return bool(self.error)

    @property
    def first_line(self) -> str:
        """The error's first line, or why the case is skipped."""
        return self.error.strip().splitlines()[0] if self.error else self.case.skipped


def run_cases(
    cases: Iterable[Case], run: Runner, report_outcome: Callable[[Outcome], None], jobs: int = 1
) -> list[Outcome]:
    """Run cases in `jobs` threads. Returns their outcomes in the order of `cases`.

    `run` returns a case's report; `report_outcome` is called when a case is done.
    """

    def run_case(case: Case) -> Outcome:
        outcome = _run(case, run)
        report_outcome(outcome)
        return outcome

    if jobs <= 1:
        return [run_case(case) for case in cases]
    pool = ThreadPoolExecutor(jobs)
    try:
        return list(pool.map(run_case, cases))
    finally:
        # After Ctrl-C, start no further cases.
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def recipe_runner(
    root: Path | Project, display: ProgressDisplay, jobs: int, executor: Executor | None = None
) -> Iterator[Runner]:
    """Yield a runner for recipes: in this process, or in `jobs` processes.

    With an executor for other machines, cases run in this process.
    """
    if jobs <= 1 or (executor is not None and executor.max_parallel):
        yield lambda case: _run_recipe(case, root, _CaseDisplay(case, display), executor)
        return
    with ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        # Ctrl-C reaches all processes of a terminal; only the parent handles it.
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    ) as pool:

        def run(case: Case) -> dict[str, Any] | None:
            display.progress("", case.title, "runs", None)
            with _block_interrupts():
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
def _block_interrupts() -> Iterator[None]:
    """Block SIGINT while a child process starts, until its initializer has run."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _CaseDisplay:
    """A display with one progress line per case instead of one per stage."""

    def __init__(self, case: Case, display: ProgressDisplay) -> None:
        self._title, self._display = case.title, display

    def progress(self, recipe: str, kind: str, message: str, fraction: float | None) -> None:
        """Show a stage's progress on the case's line."""
        self._display.progress("", self._title, f"{kind}: {message}", fraction)


def _in_process(case: Case, root: Path | Project) -> tuple[dict[str, Any] | None, str]:
    """Return report and error message: exceptions of the pipeline cannot be pickled."""
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
        # A failed row must not hide the figures of the others.
        return Outcome(case, error=_message(error))
    if report is None:
        return Outcome(case, error="the run wrote no report")
    if report["verify"] is None:
        return Outcome(case, error="the recipe has no stage verify")
    record = record_of(case, report)
    wrong = record.verify["mismatches"]
    if wrong:
        checked = record.verify["outputs_checked"]
        return Outcome(case, record, f"not exact: {wrong:,} of {checked:,} output values differ")
    return Outcome(case, record)
