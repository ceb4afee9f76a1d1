"""`doit bench`: the plug-in named in pyproject.toml."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.commands.bench.files import writing
from pipeline.commands.command import Command, variables
from pipeline.commands.drawing import Draw
from pipeline.commands.executing import EXECUTOR, chosen, executing
from pipeline.commands.exit_codes import FAILED
from pipeline.commands.reported import reported
from pipeline.errors import PipelineError
from pipeline.project import Project, current_project, project_of
from stages.messages import escape
from stages.messages.wording import did_you_mean

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeline.commands.bench.cases import Case
    from pipeline.commands.bench.run import Outcome, Runner
    from pipeline.commands.bench.suite import Suite
    from pipeline.terminal.progress import ProgressDisplay
    from pipeline.terminal.table import Table


NETWORKS, LAYERS = "networks", "layers"


def _option(name: str, kind: type, default: Any, text: str, short: str = "") -> dict[str, Any]:
    return {"name": name, "long": name, "short": short, "type": kind, "default": default, "help": text}


class Bench(Command):
    """Runs the suite, prints the table, and keeps or checks the figures."""

    name = "bench"
    variables = ("suite", "drawn", "seed")
    own = (EXECUTOR,)
    doc_purpose = "measure instructions, RAM and ROM of the networks in pipeline/commands/bench/suite.yaml"
    doc_usage = (
        "[suite=layers [drawn=200 [seed=1]] [--peer NAME=PATH]] [executor=tls://…] [--only GLOBS] [--targets NAMES] "
        "[--models DIR] [--check | --update | --times]"
    )
    doc_description = (
        "Artifacts are cached as in any run. Exit code 1 when a row fails, or when --check finds figures worse than "
        "those of docs/bench.json, a figure above its `at_most` or a ratio below its `at_least`; 3 when nothing is and "
        "stored figures are stale: other kernels made them, or today's are over 5 % lower. suite=layers measures "
        "single layers instead, many in one firmware, and keeps their figures in docs/layers.json; with drawn= so many "
        "layers drawn at random, each run others (seed= repeats one). Its --check fails too where a layer takes more "
        "on a core than on one of the same family with narrower registers."
    )
    cmd_options = (
        _option("only", str, "", "names of rows, with * and ?, separated by commas"),
        _option("targets", str, "", "targets to measure on, separated by commas"),
        _option("models", str, "", "measure every *.tflite file under this folder instead of the suite"),
        _option("recipe", str, "", "with --models: the recipe whose options hold"),
        _option("peer", str, "", "with suite=layers: cmsis-nn=PATH, a checkout whose functions are counted as well"),
        _option(
            "check",
            bool,
            False,
            "fail when instructions, RAM or ROM rose by over a percent, or leave a limit of the suite",
        ),
        _option(
            "update",
            bool,
            False,
            "write docs/bench.json and the tables in README.md and docs/reference/, or docs/layers.json and its page",
        ),
        _option("times", bool, False, "print how long cold, unchanged and changed runs take"),
        _option("json", str, "", "write the figures to this file"),
        _option("markdown", str, "", "write the tables to this file"),
        _option(
            "jobs", int, None, "how many rows run side by side; 1, or with executor= as many as it takes", short="n"
        ),
    )

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Run what the options ask for. Returns the exit code."""

        def work() -> int:
            if pos_args:
                raise PipelineError(f"doit bench takes no argument '{pos_args[0]}'; rows are chosen with --only")
            with executing(self.given):
                given = variables()
                return bench(opt_values, suite_name=given.get("suite", NETWORKS), drawing=given)

        return reported(work)


def bench(
    options: dict[str, Any],
    *,
    root: Path | Project | None = None,
    suite_file: Path | None = None,
    run: Runner | None = None,
    suite_name: str = NETWORKS,
    drawing: Mapping[str, str] | None = None,
) -> int:
    """What `doit bench` does; `run` gives the report of a case, by running its recipe if None. Raises PipelineError.

    `drawing` may have `drawn` and `seed`, as they are typed.
    """
    from pipeline.commands.bench import suite as suites
    from pipeline.commands.bench.layers import bench_layers
    from pipeline.commands.bench.layers import refuse as refuse_modes
    from pipeline.commands.bench.run import recipe_runner
    from pipeline.commands.bench.times import measure_times
    from pipeline.terminal.progress import ProgressDisplay

    suite = suites.load_suite(suite_file or suites.SUITE)
    if suite_name not in (NETWORKS, LAYERS):
        guess = did_you_mean(suite_name, (NETWORKS, LAYERS))
        raise PipelineError(f"unknown suite '{escape.name(suite_name)}'{guess}", hint=f"Known: {NETWORKS}, {LAYERS}")
    project = current_project() if root is None else project_of(root)
    draw = _draw(drawing or {}, suite_name)
    if suite_name == LAYERS:
        refuse_modes(options)
    else:
        _refuse(options)
    _refuse_elsewhere(options, project)
    if suite_name == LAYERS:
        display = ProgressDisplay()
        try:
            return bench_layers(options, suite.layers, project, display, draw)
        finally:
            display.close()
    root = project.root
    if options["times"]:
        measure_times(suite.times, root, lambda line: print(escape.line(line), flush=True))
        return 0
    cases, selected = _cases(options, suite, project)
    executor = chosen()
    display = ProgressDisplay()
    try:
        jobs = options["jobs"] or executor.width or 1
        with nullcontext(run) if run else recipe_runner(project, display, jobs, executor) as runner:
            outcomes = _run(selected, runner, display, jobs)
    finally:
        display.close()
    return _finish(options, root, suite, cases, outcomes, display)


def _draw(given: Mapping[str, str], suite_name: str) -> Draw | None:
    found = [name for name in ("drawn", "seed") if name in given]
    if found and suite_name != LAYERS:
        raise PipelineError(f"{found[0]}= goes with suite=layers")
    if found == ["seed"]:
        raise PipelineError("seed= goes with drawn=, as drawn=200")
    return Draw.of(given) if found else None


def _refuse(options: dict[str, Any]) -> None:
    modes = [f"--{name}" for name in ("check", "update", "times") if options[name]]
    if len(modes) > 1:
        raise PipelineError(f"give one of {' and '.join(modes)}")
    if options["models"] and modes:
        raise PipelineError(f"{modes[0]} is about the suite; it does not go with --models")
    if options["recipe"] and not options["models"]:
        raise PipelineError("--recipe goes with --models; rows of the suite name their recipes")
    if options["peer"]:
        raise PipelineError("--peer goes with suite=layers")
    if options["jobs"] is not None and options["jobs"] < 1:
        raise PipelineError(f"-n {options['jobs']}: should be 1 or more")


def _refuse_elsewhere(options: dict[str, Any], project: Project) -> None:
    """What is stored and timed are the figures of Firmline's own repository."""
    for mode in ("check", "update", "times"):
        if options[mode] and not project.is_standalone:
            raise PipelineError(f"--{mode} is about Firmline's own figures: run it in a clone of Firmline")


def _cases(options: dict[str, Any], suite: Suite, project: Project) -> tuple[list[Case], list[Case]]:
    """All cases, and those that the options select."""
    from pipeline.commands.bench.cases import file_cases, models_folder, select, suite_cases
    from pipeline.recipes.targets import load_targets

    targets, root = load_targets(project), project.root
    if options["models"]:
        changes: dict[str, Any] = {"recipe": options["recipe"]} if options["recipe"] else {}
        if options["targets"]:
            changes["targets"] = tuple(name.strip() for name in options["targets"].split(",") if name.strip())
        folder = Path(options["models"]).expanduser().resolve()
        cases = file_cases(folder, suite.models.model_copy(update=changes), root)
    else:
        cases = suite_cases(suite.rows, root, models_folder(root))
    return cases, select(cases, options["only"], options["targets"], targets)


def _run(cases: list[Case], run: Runner, display: ProgressDisplay, jobs: int) -> list[Outcome]:
    from pipeline.commands.bench.record import unit_of
    from pipeline.commands.bench.run import run_cases

    width = max(len(escape.name(case.title)) for case in cases)

    def tell(outcome: Outcome) -> None:
        display.end("", outcome.case.title)
        record = outcome.record
        if outcome.failed:
            text = f"failed: {outcome.error}"
        elif record is None:
            text = f"skipped: {outcome.first_line}"
        else:
            text = "no counter" if record.instructions is None else f"{record.instructions:>15,} {unit_of(record)}"
        # The lines of an error stay together, below their case.
        display.line(f"  {escape.name(outcome.case.title):{width}}  {text}".replace("\n", "\n      "))

    return run_cases(cases, run, tell, jobs)


def _finish(
    options: dict[str, Any],
    root: Path,
    suite: Suite,
    cases: list[Case],
    outcomes: list[Outcome],
    display: ProgressDisplay,
) -> int:
    """Show and write what was measured. Returns the exit code."""
    from pipeline.commands.bench.page import page
    from pipeline.commands.bench.ratio import ratio_tables, short_ratios
    from pipeline.commands.bench.record import write_records
    from pipeline.commands.bench.table import case_table, cycles_table

    records = [outcome.record for outcome in outcomes if outcome.record is not None and not outcome.failed]
    display.show(partial(_drawn, case_table(outcomes), "one inference; bytes for arena, RAM and ROM"))
    if cycles := cycles_table(outcomes):
        display.show(partial(_drawn, cycles, "cycles of one inference on boards with an accelerator"))
    measured = {record.id: record for record in records}
    for title, table in ratio_tables(suite, measured):
        display.show(partial(_drawn, table, f"{title}, instructions"))
    if options["json"]:
        writing(options["json"], lambda path: write_records(path, records))
    if options["markdown"]:
        writing(options["markdown"], lambda path: path.write_text(page(outcomes, suite), encoding="utf-8"))
    failed = sum(outcome.failed for outcome in outcomes)
    code = 0
    if options["check"]:
        code = _check(root, outcomes, short_ratios(suite, measured))
    if options["update"]:
        _update(root, suite, cases, outcomes)
    if failed:
        sys.stderr.write(f"ERROR: {failed} of {len(outcomes)} rows failed\n")
    return FAILED if failed else code


def _drawn(table: Table, title: str, width: int) -> RenderableType:
    """The table as a display shows it; rich fits it into `width` by itself."""
    from pipeline.terminal.table import render

    return render(table, title)


def _check(root: Path, outcomes: list[Outcome], short: list[str]) -> int:
    from pipeline.commands.bench.check import check
    from pipeline.commands.bench.record import read_records

    verdict = check(outcomes, read_records(root / "docs" / "bench.json"))
    verdict.worse.extend(short)
    verdict.tell("doit bench --update")
    compared = sum(outcome.record is not None for outcome in outcomes)
    counts = f"{len(verdict.worse)} worse, {len(verdict.better)} better, {len(verdict.stale)} stale"
    print(f"{counts}; {compared} of {len(outcomes)} rows measured")
    return verdict.exit_code


def _update(root: Path, suite: Suite, cases: list[Case], outcomes: list[Outcome]) -> None:
    """Store what was measured; rows that were not keep their stored figures, rows no longer in the suite go."""
    from pipeline.commands.bench.page import figures_section, short_section, update_page
    from pipeline.commands.bench.record import read_records, write_records

    place = root / "docs" / "bench.json"
    records = read_records(place)
    for outcome in outcomes:
        if outcome.failed:
            # Its figures are no longer true.
            records.pop(outcome.case.id, None)
        elif outcome.record is not None:
            records[outcome.case.id] = outcome.record
    kept = {case.id: records[case.id] for case in cases if case.id in records}
    measured = {outcome.case.id for outcome in outcomes}
    old = sum(outcome.record is None and not outcome.failed and outcome.case.id in kept for outcome in outcomes)
    old += sum(case.id in kept and case.id not in measured for case in cases)
    write_records(place, kept.values())
    for page, section in (("docs/reference/figures.md", figures_section), ("README.md", short_section)):
        changed = update_page(root / page, section(cases, suite, kept))
        print(f"{page}: the tables are {'new' if changed else 'as they were'}")
    print(f"docs/bench.json: {len(kept)} rows" + (f", {old} of them as they were" if old else ""))
