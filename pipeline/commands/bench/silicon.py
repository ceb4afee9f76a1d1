"""`doit bench suite=silicon`: timing models compared with published times on chips."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from pipeline.commands.bench.baseline import parse_checkouts
from pipeline.commands.bench.files import write_named_file
from pipeline.commands.bench.silicon_closed import closed_table
from pipeline.commands.bench.silicon_firmware import built_firmware
from pipeline.commands.bench.silicon_fit import FitProgram, fit_models
from pipeline.commands.counting import tools_of
from pipeline.commands.exit_codes import FAILED
from pipeline.errors import PipelineError, list_known
from pipeline.keys.package_groups import install_group
from pipeline.project import Project
from pipeline.recipes.silicon import load_silicon
from pipeline.recipes.targets import load_targets, unknown_target_error
from pipeline.runs.cache import StoreCache
from pipeline.runs.workspace import Workspace
from pipeline.terminal.progress import ProgressDisplay
from pipeline.terminal.table import Table, markdown
from stages.backends.targets.spec import Target
from stages.backends.timing.accuracy import FILE
from stages.backends.timing.silicon import CLOSED, FIRMLINE, RESET, Measurement, Silicon
from stages.base import StageError
from stages.delivery.bench.silicon import PUBLISHED
from stages.delivery.bench.silicon.compilers import uses_clang
from stages.delivery.bench.silicon.program import NotInCheckout, flags_of
from stages.support.messages import escape
from stages.support.system.atomic_write import check_writable

if TYPE_CHECKING:
    from stages.delivery.bench.silicon.run import Result

_COLUMNS = ("chip", "target", "run", "variant", "options", "instructions", "predicted", "published", "error", "kind")
_OPTIONS = ("opt", "fastscale", "local_math")
_MACHINE = re.compile(r"(?<!\S)-m[\w-]+=[^\s,]+")
_UNUSED = ("models", "recipe", "times", "check")


@dataclass(frozen=True)
class Row:
    """A measurement with a time, and the target whose model predicts it.

    core       Firmline's name of the chip's core, or its title
    published  cycles
    target     None if no target has the core
    compared   False: the published time is not that of the program alone, or depends on an unknown memory
    """

    measurement: Measurement
    core: str
    published: float
    target: Target | None
    compared: bool = True

    @property
    def kind(self) -> str:
        """Use of the row: `fit`, `held out` or `not compared`."""
        return "not compared" if not self.compared else "fit" if self.measurement.fit else "held out"

    @property
    def name(self) -> str:
        """Name in patterns: chip, function or network, variant and options."""
        measurement = self.measurement
        return "/".join(filter(None, (measurement.chip, measurement.run, measurement.variant, self.options)))

    @property
    def options(self) -> str:
        """Options of the program and optimization of the compiler, as text. Sizes are not options."""
        arguments = self.measurement.arguments
        if self.measurement.code == FIRMLINE:
            return str(arguments.get("options", ""))
        options = [f"{name}={arguments[name]}" for name in _OPTIONS if name in arguments]
        clang = ["clang"] if uses_clang(self.measurement.compiler) else []
        return " ".join([*options, *clang, *flags_of(self.measurement.compiler)])


@dataclass(frozen=True)
class Outcome:
    """A row with its result, or why it failed or was not run."""

    row: Row
    result: Result | None = None
    failed: str = ""
    missing: str = ""

    @property
    def error(self) -> float | None:
        """Predicted / published cycles - 1; None without a prediction or a comparable row."""
        if self.result is None or self.result.cycles is None or not self.row.compared:
            return None
        return self.result.cycles[1] / self.row.published - 1


def bench_silicon(options: Mapping[str, Any], project: Project) -> int:
    """Run the selected rows; print and write the figures.

    Returns the exit code. Raises PipelineError.
    """
    for name in _UNUSED:
        if options[name]:
            raise PipelineError(f"{name.replace('models', 'model')} cannot be combined with suite=silicon")
    if options["update"] and not project.is_standalone:
        raise PipelineError("--update writes a file of Firmline's repository: run it in a clone of Firmline")
    for option in ("update", "fit"):
        if options[option] and options["only"]:
            raise PipelineError(f"--{option} needs all rows of a core; leave only= out")
    for name in (*filter(None, (options["json"], options["markdown"])), *([str(FILE)] if options["update"] else [])):
        write_named_file(name, check_writable)
    known = silicon_rows(project)
    rows = select(known, options["only"], options["targets"], project)
    folders = parse_checkouts(options["peer"], _headers(known))
    display = ProgressDisplay()
    try:
        with Workspace(root=project, install=install_group) as workspace:
            if options["fit"]:
                rows, table = _fitted(rows, folders, workspace, display)
                display.show_table(table, "fitted parameters")
            outcomes = list(_outcomes(rows, folders, workspace, display, options["jobs"] or 1))
            closed = closed_table(dict.fromkeys(row.measurement.chip for row in rows), workspace)
    finally:
        display.close()
    tables = {"cycles": row_table(outcomes), "error of the timing models": core_table(outcomes)}
    tables["closed code: stored estimates of `doit fit model=zoo:…`"] = closed
    for title, table in tables.items():
        if table.rows:
            display.show_table(table, title)
    for line, count in _not_run(outcomes).items():
        print(f"not run: {count} rows; {line}")
    if options["json"]:
        records = [record_of(outcome) for outcome in outcomes]
        write_named_file(options["json"], lambda path: path.write_text(json.dumps(records, indent=1) + "\n"))
    if options["markdown"]:
        text = "\n".join(f"## {title}\n\n{markdown(table)}" for title, table in tables.items())
        write_named_file(options["markdown"], lambda path: path.write_text(text, encoding="utf-8"))
    failed = [outcome for outcome in outcomes if outcome.failed]
    if options["update"]:
        found = {**json.loads(FILE.read_text(encoding="utf-8")), **accuracies(outcomes)}
        text = json.dumps(dict(sorted(found.items())), indent=1) + "\n"
        write_named_file(str(FILE), lambda path: path.write_text(text, encoding="utf-8"))
    for outcome in failed:
        sys.stderr.write(f"ERROR: {escape.line(outcome.row.name)}: {escape.message(outcome.failed)}\n")
    return FAILED if failed else 0


def _fitted(
    rows: Sequence[Row], folders: Mapping[str, Path], workspace: Workspace, display: ProgressDisplay
) -> tuple[list[Row], Table]:
    """Fit the timing models of the rows marked fit.

    Returns the rows with the new models, and the parameters.
    """
    programs = [
        FitProgram(row.name, row.target, row.published, partial(built_row, row, folder_of(row, folders), workspace))
        for row in rows
        if row.target is not None and row.compared and row.measurement.fit and not why_not(row, folders)
    ]
    project = workspace.project
    models, table = fit_models(programs, project, lambda done, what: display.progress("", "fit", what, done))
    return [
        replace(row, target=row.target.model_copy(update={"timing_model": models[row.target.timing]}))
        if row.target is not None and row.target.timing in models
        else row
        for row in rows
    ], table


def silicon_rows(project: Project) -> list[Row]:
    """Return the rows of silicon.yaml that have a time."""
    silicon, targets = load_silicon(project), load_targets(project)
    return [
        Row(row, silicon.core(row), silicon.cycles(row), target_of(row, silicon, targets), silicon.is_compared(row))
        for row in silicon.measurements
        if row.has_time
    ]


def target_of(row: Measurement, silicon: Silicon, targets: Mapping[str, Target]) -> Target | None:
    """Return the core of a row's chip as a target.

    The target has the wait states of the chip and the machine flags of the row. If the chip names a timing model, it is
    the first target with this model; for rows of Firmline's networks, the measured board. None if there is none.
    """
    chip = silicon.chips[row.chip]
    board = targets.get(row.chip.removesuffix(RESET)) if row.code == FIRMLINE else None
    with_model = (each.in_simulator for each in targets.values() if chip.core and each.timing == chip.core)
    target = board.in_simulator if board else targets.get(chip.core or "") or next(with_model, None)
    flash = targets[chip.board].flash if chip.board else chip.flash
    if target is None:
        return None
    of_row = {flag.partition("=")[0]: flag for flag in _MACHINE.findall(row.compiler)}
    flags = tuple(of_row.get(flag.partition("=")[0], flag) for flag in target.compiler.flags)
    compiler = target.compiler.model_copy(update={"flags": flags})
    return target.model_copy(update={"flash": flash, "compiler": compiler})


def select(rows: Sequence[Row], only: str, target_names: str, project: Project) -> list[Row]:
    """Return the rows that match a pattern and have one of these cores.

    Raises PipelineError if there are none.
    """
    cores = [name.strip() for name in target_names.split(",") if name.strip()]
    known = load_targets(project)
    for name in cores:
        if name not in known and all(row.core != name for row in rows):
            raise unknown_target_error(name, known)
    globs = [part.strip() for part in only.split(",") if part.strip()]
    of_cores = [row for row in rows if not cores or row.core in cores]
    selected = [row for row in of_cores if not globs or any(_matches(row.name, glob) for glob in globs)]
    if not selected:
        what = f"only={escape.name(only)}: no row matches" if of_cores else f"no row has the core {', '.join(cores)}"
        names = [row.measurement.chip for row in of_cores] or [row.core for row in rows if row.target is not None]
        raise PipelineError(what, hint=list_known("chips" if of_cores else "cores", dict.fromkeys(names)))
    return selected


def _matches(name: str, glob: str) -> bool:
    """Whether a pattern matches the name or its first parts."""
    return fnmatchcase(name, glob) or fnmatchcase(name, f"{glob}/*")


def _outcomes(
    rows: Sequence[Row], folders: Mapping[str, Path], workspace: Workspace, display: ProgressDisplay, jobs: int
) -> Iterator[Outcome]:
    runnable: dict[int, str] = {}
    for number, row in enumerate(rows):
        runnable[number] = why_not(row, folders)

    def run(numbered: tuple[int, Row]) -> Outcome:
        number, row = numbered
        if runnable[number]:
            return Outcome(row, missing=runnable[number])
        display.progress("", "silicon", row.name, number / len(rows))
        try:
            return Outcome(row, run_row(row, folder_of(row, folders), workspace))
        except NotInCheckout as error:
            return Outcome(row, missing=error.message)
        except StageError as error:
            return Outcome(row, failed=error.message)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(run, enumerate(rows))
    display.end("", "silicon")


def why_not(row: Row, folders: Mapping[str, Path]) -> str:
    """Return what is missing to run a row, '' if nothing."""
    code = row.measurement.code
    if row.target is None:
        return f"no target has the core {row.core}"
    if code == FIRMLINE:
        return ""
    if code not in PUBLISHED:
        return f"no program runs {code}"
    if row.target.family not in PUBLISHED[code].families:
        return f"{code} does not support {row.target.family}"
    return "" if folder_of(row, folders) else f"name a checkout with peer={code}=PATH"


def folder_of(row: Row, folders: Mapping[str, Path]) -> Path | None:
    """Return the checkout that a row's version names, else that of its code; None without both."""
    return folders.get(_repository(row), folders.get(row.measurement.code))


def _repository(row: Row) -> str:
    """Return the first word of a row's version, which names a repository.

    An example is `dreamcmi/STM32G474-TinyMaix`.
    """
    return row.measurement.version.replace(",", " ").split()[0]


def _headers(rows: Iterable[Row]) -> dict[str, str]:
    """Return a file that a checkout has, by the names that `peer=` may have."""
    codes = {name: code.header for name, code in PUBLISHED.items()}
    known = [row for row in rows if row.measurement.code in codes]
    return codes | {_repository(row): codes[row.measurement.code] for row in known}


def run_row(row: Row, folder: Path | None, workspace: Workspace) -> Result:
    """Return the result of a row from a checkout, from the store if possible.

    Raises StageError.
    """
    from stages.delivery.bench.silicon.run import measured

    assert row.target is not None
    elf = built_row(row, folder, workspace)
    return measured(elf, row.target, StoreCache(workspace, "bench"), _tools(row, workspace))


def built_row(row: Row, folder: Path | None, workspace: Workspace) -> Path:
    """Return a row's linked program.

    The program reads the counter before and after the measured call. Raises StageError.
    """
    from stages.delivery.bench.silicon.run import built

    assert row.target is not None
    if row.measurement.code == FIRMLINE:
        return built_firmware(row.measurement, row.target.name, workspace)
    assert folder is not None
    program = PUBLISHED[row.measurement.code].program(row.measurement, folder)
    return built(program, row.target, StoreCache(workspace, "bench"), _tools(row, workspace))


def _tools(row: Row, workspace: Workspace) -> dict[str, str]:
    assert row.target is not None
    return {name: workspace.planner.tools.identify(tool).version for name, tool in tools_of(row.target).items()}


def row_table(outcomes: Iterable[Outcome]) -> Table:
    """Return a line per row that ran or failed."""
    ran = [outcome for outcome in outcomes if not outcome.missing]
    return Table(_COLUMNS, tuple(_cells(outcome) for outcome in ran), tuple(not outcome.failed for outcome in ran))


def _cells(outcome: Outcome) -> tuple[str, ...]:
    row, result = outcome.row, outcome.result
    measurement = row.measurement
    cycles = f"{result.cycles[1]:,}" if result and result.cycles else ""
    return (
        *(measurement.chip, row.core, measurement.run, measurement.variant or "", row.options),
        *("failed" if result is None else f"{result.instructions:,}", cycles, f"{row.published:,.0f}"),
        *("" if outcome.error is None else f"{100 * outcome.error:+.1f} %", row.kind),
    )


def core_table(outcomes: Iterable[Outcome]) -> Table:
    """Return a line per core and kind of row.

    It has the number of rows, the mean absolute error and the worst error.
    """
    errors: dict[tuple[str, str], list[float]] = {}
    for outcome in outcomes:
        if outcome.error is not None:
            errors.setdefault((outcome.row.core, outcome.row.kind), []).append(100 * outcome.error)
    cells = tuple(
        (core, kind, str(len(of_core)), f"{mean(map(abs, of_core)):.1f} %", f"{max(of_core, key=abs):+.1f} %")
        for (core, kind), of_core in sorted(errors.items())
    )
    return Table(("target", "kind", "rows", "mean error", "worst"), cells, (True,) * len(cells))


def accuracies(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """Return the content of silicon.json for the timing models of the rows that ran."""
    of_models: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.error is not None and outcome.row.target is not None and outcome.row.target.timing_model is not None:
            of_models.setdefault(outcome.row.target.timing_model.name, []).append(outcome)
    by_model = {}
    for model, ran in of_models.items():
        held_out = [outcome for outcome in ran if not outcome.row.measurement.fit]
        errors = [abs(outcome.error or 0.0) for outcome in held_out or ran]
        figures = {"mean": round(mean(errors), 3), "worst": round(max(errors), 3)}
        by_model[model] = {"rows": len(ran), "held_out": len(held_out), **figures}
    return by_model


def _not_run(outcomes: Iterable[Outcome]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for outcome in outcomes:
        if outcome.missing and outcome.row.measurement.code != CLOSED:
            counts[outcome.missing] = counts.get(outcome.missing, 0) + 1
    return counts


def record_of(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as JSON."""
    row, result = outcome.row, outcome.result
    return {
        **row.measurement.model_dump(mode="json", include={"chip", "code", "run", "arguments", "variant", "fit"}),
        "core": row.core,
        "compared": row.compared,
        "published": row.published,
        "instructions": result and result.instructions,
        "cycles": result and result.cycles,
        "error": outcome.error,
        "failed": outcome.failed or outcome.missing or None,
    }
