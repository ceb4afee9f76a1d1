"""The command `doit bench`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.commands.bench.files import write_named_file
from pipeline.commands.command import Command, command_option, variables
from pipeline.commands.executor import EXECUTOR, current_executor, selected_executor
from pipeline.commands.exit_codes import FAILED
from pipeline.commands.sampling import Sampling
from pipeline.errors import PipelineError
from pipeline.project import Project, current_project, project_of
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean

if TYPE_CHECKING:
    from pipeline.commands.bench.cases import Case
    from pipeline.commands.bench.run import Outcome, Runner
    from pipeline.commands.bench.suite import Suite
    from pipeline.terminal.progress import ProgressDisplay


NETWORKS, LAYERS, SILICON = SUITES = "networks", "layers", "silicon"
# Names in `options` of the keys that select what is measured.
SELECTION = {"only": "only", "targets": "target", "models": "model", "recipe": "recipe", "peer": "peer"}


class Bench(Command):
    """`doit bench`."""

    name = "bench"
    group = "compare"
    names = "rows"
    examples = (
        ("'kws*' target=cortex-m4", "some rows of the suite on one core"),
        ("model=../models target=host", "every .tflite file below a folder"),
        ("--check", "against the stored figures"),
        ("suite=layers 'pooling/*' target=cortex-m4", "single layers"),
        ("suite=silicon apollo510 peer=cmsis-nn=../CMSIS-NN", "timing models against published times of a chip"),
    )
    keys_help = (
        ("NAME", "rows of the suite, with * and ?"),
        ("only", "the same as NAME"),
        ("suite", "networks (default), layers or silicon"),
        ("target", "targets to measure on"),
        ("model", "measure every .tflite file below this folder instead of the suite"),
        ("recipe", "with model=: the recipe that gives the options"),
        ("drawn", "with suite=layers: number of random layers instead of the suite's"),
        ("seed", "with drawn=: repeats a sample"),
        ("peer", "cmsis-nn=PATH: a checkout whose functions suite=layers also measures, or suite=silicon runs"),
    )
    variables = ("suite", "target", "board", "model", "recipe", "only", "drawn", "seed", "peer")
    own_variables = (EXECUTOR,)
    doc_purpose = "measure instructions, RAM and ROM of the models in pipeline/commands/bench/suite.yaml"
    doc_usage = (
        "[NAME...] [target=…] [model=FOLDER [recipe=NAME] | suite=layers [drawn=N [seed=N]] [peer=cmsis-nn=PATH] "
        "| suite=silicon [peer=NAME=PATH,…]] "
        "[--check | --update | --times]"
    )
    doc_description = (
        "Uses cached artifacts like any run. Exits with 1 if a row fails, or if --check finds figures worse than "
        "those of docs/bench.json, a figure above its `at_most` or a ratio below its `at_least`. Exits with 3 if only"
        " stored figures are stale: other kernels were measured, or today's figures are over 5 % lower. suite=layers "
        "measures single layers, many in one firmware, and stores their figures in docs/layers.json. With "
        "suite=layers, --check also fails if a layer needs more instructions than on a core of the same family with "
        "narrower registers. suite=silicon compiles published programs, of checkouts that peer= names, runs them with "
        "the timing models, and compares the cycles with those measured on chips."
    )
    cmd_options = (
        command_option("check", "fail if instructions, RAM or ROM grew by over 1 %, or exceed a limit of the suite"),
        command_option(
            "update",
            "update docs/bench.json and the tables in README.md and docs/reference/, or docs/layers.json and its page, "
            "or the errors of timing models that reports show",
        ),
        command_option("fit", "with suite=silicon: fit open parameters of timing models to the rows marked fit"),
        command_option("times", "measure the duration of cold, unchanged and changed runs"),
        command_option("json", "write the figures to this file", str),
        command_option("markdown", "write the tables to this file", str),
        command_option(
            "jobs", "number of rows that run in parallel; default 1, or the executor's capacity", int, short="n"
        ),
    )

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        with selected_executor(self.own_values):
            values = variables()
            values.setdefault("target", values.get("board", ""))
            values["only"] = ",".join(filter(None, (*named, values.get("only", ""))))
            selection = {name: values.get(key, "") for name, key in SELECTION.items()}
            suite_name = values.get("suite", NETWORKS)
            return bench({**options, **selection}, suite_name=suite_name, sampling=values)


def bench(
    options: dict[str, Any],
    *,
    root: Path | Project | None = None,
    suite_file: Path | None = None,
    run: Runner | None = None,
    suite_name: str = NETWORKS,
    sampling: Mapping[str, str] | None = None,
) -> int:
    """Run `doit bench`. Returns the exit code. Raises PipelineError.

    run       returns the report of a case; None: run its recipe
    sampling  may have `drawn` and `seed`, as typed
    """
    from pipeline.commands.bench import suite as suites
    from pipeline.commands.bench.layers import bench_layers
    from pipeline.commands.bench.layers import refuse as refuse_modes
    from pipeline.commands.bench.run import recipe_runner
    from pipeline.commands.bench.silicon import bench_silicon
    from pipeline.commands.bench.times import measure_times
    from pipeline.terminal.progress import ProgressDisplay

    suite = suites.load_suite(suite_file or suites.SUITE)
    if suite_name not in SUITES:
        guess = did_you_mean(suite_name, SUITES)
        raise PipelineError(f"unknown suite '{escape.name(suite_name)}'{guess}", hint=f"Known: {', '.join(SUITES)}")
    project = current_project() if root is None else project_of(root)
    sample = _sampling(sampling or {}, suite_name)
    if suite_name == SILICON:
        return bench_silicon(options, project)
    if options.get("fit"):
        raise PipelineError("--fit needs suite=silicon")
    if suite_name == LAYERS:
        refuse_modes(options)
    else:
        _refuse(options)
    _refuse_outside_clone(options, project)
    if suite_name == LAYERS:
        display = ProgressDisplay()
        try:
            return bench_layers(options, suite.layers, project, display, sample)
        finally:
            display.close()
    root = project.root
    if options["times"]:
        measure_times(suite.times, root, lambda line: print(escape.line(line), flush=True))
        return 0
    cases, selected = _cases(options, suite, project)
    executor = current_executor()
    display = ProgressDisplay()
    try:
        jobs = options["jobs"] or executor.max_parallel or 1
        with nullcontext(run) if run else recipe_runner(project, display, jobs, executor) as runner:
            outcomes = _run(selected, runner, display, jobs)
    finally:
        display.close()
    return _finish(options, root, suite, cases, outcomes, display)


def _sampling(values: Mapping[str, str], suite_name: str) -> Sampling | None:
    names = [name for name in ("drawn", "seed") if name in values]
    if names and suite_name != LAYERS:
        raise PipelineError(f"{names[0]}= needs suite=layers")
    if names == ["seed"]:
        raise PipelineError("seed= needs drawn=, such as drawn=200")
    return Sampling.of(values) if names else None


def _refuse(options: dict[str, Any]) -> None:
    modes = [f"--{name}" for name in ("check", "update", "times") if options[name]]
    if len(modes) > 1:
        raise PipelineError(f"{' and '.join(modes)} cannot be combined")
    if options["models"] and modes:
        raise PipelineError(f"{modes[0]} applies to the suite; it cannot be combined with model=")
    if options["recipe"] and not options["models"]:
        raise PipelineError("recipe= needs model=FOLDER: rows of the suite have their recipes")
    if options["peer"]:
        raise PipelineError("peer= needs suite=layers or suite=silicon")
    if options["jobs"] is not None and options["jobs"] < 1:
        raise PipelineError(f"-n {options['jobs']}: expected 1 or more")


def _refuse_outside_clone(options: dict[str, Any], project: Project) -> None:
    """Raise PipelineError for modes that use stored figures, except in a clone of Firmline."""
    for mode in ("check", "update", "times"):
        if options[mode] and not project.is_standalone:
            raise PipelineError(f"--{mode} uses the figures of Firmline's repository: run it in a clone of Firmline")


def _cases(options: dict[str, Any], suite: Suite, project: Project) -> tuple[list[Case], list[Case]]:
    """Return all cases, and those that the options select."""
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

    def show(outcome: Outcome) -> None:
        display.end("", outcome.case.title)
        record = outcome.record
        if outcome.failed:
            text = f"failed: {outcome.error}"
        elif record is None:
            text = f"skipped: {outcome.first_line}"
        else:
            text = "no counter" if record.instructions is None else f"{record.instructions:>15,} {unit_of(record)}"
        # Indent the lines of an error below its case.
        display.line(f"  {escape.name(outcome.case.title):{width}}  {text}".replace("\n", "\n      "))

    return run_cases(cases, run, show, jobs)


def _finish(
    options: dict[str, Any],
    root: Path,
    suite: Suite,
    cases: list[Case],
    outcomes: list[Outcome],
    display: ProgressDisplay,
) -> int:
    """Print, store and check the results. Returns the exit code."""
    from pipeline.commands.bench.page import page
    from pipeline.commands.bench.ratio import ratio_tables, short_ratios
    from pipeline.commands.bench.record import write_records
    from pipeline.commands.bench.table import case_table, cycles_table

    records = [outcome.record for outcome in outcomes if outcome.record is not None and not outcome.failed]
    display.show_table(case_table(outcomes), "one inference; bytes for arena, RAM and ROM")
    if cycles := cycles_table(outcomes):
        display.show_table(cycles, "cycles of one inference on boards with an accelerator")
    measured = {record.id: record for record in records}
    for title, table in ratio_tables(suite, measured):
        display.show_table(table, f"{title}, instructions")
    if options["json"]:
        write_named_file(options["json"], lambda path: write_records(path, records))
    if options["markdown"]:
        write_named_file(options["markdown"], lambda path: path.write_text(page(outcomes, suite), encoding="utf-8"))
    failed = [f"{outcome.case.title}: {outcome.first_line}" for outcome in outcomes if outcome.failed]
    code = 0
    if options["check"]:
        code = _check(root, outcomes, short_ratios(suite, measured))
    if options["update"]:
        _update(root, suite, cases, outcomes)
    if failed:
        named = escape.message("\n  ".join([f"{len(failed)} of {len(outcomes)} rows failed", *failed]))
        sys.stderr.write(f"ERROR: {named}\n")
    return FAILED if failed else code


def _check(root: Path, outcomes: list[Outcome], short: list[str]) -> int:
    from pipeline.commands.bench.check import check
    from pipeline.commands.bench.record import read_records

    verdict = check(outcomes, read_records(root / "docs" / "bench.json"))
    verdict.worse.extend(short)
    verdict.print("doit bench --update")
    compared = sum(outcome.record is not None for outcome in outcomes)
    counts = f"{len(verdict.worse)} worse, {len(verdict.better)} better, {len(verdict.stale)} stale"
    print(f"{counts}; {compared} of {len(outcomes)} rows measured")
    return verdict.exit_code


def _update(root: Path, suite: Suite, cases: list[Case], outcomes: list[Outcome]) -> None:
    """Store the measured figures; keep other rows, also failed ones, that are in the suite."""
    from pipeline.commands.bench.page import figures_section, short_section, update_page
    from pipeline.commands.bench.record import read_records, write_records

    place = root / "docs" / "bench.json"
    measured = {
        outcome.case.id: outcome.record for outcome in outcomes if outcome.record is not None and not outcome.failed
    }
    records = read_records(place) | measured
    kept = {case.id: records[case.id] for case in cases if case.id in records}
    old = len(kept.keys() - measured.keys())
    write_records(place, kept.values())
    for page, section in (("docs/reference/figures.md", figures_section), ("README.md", short_section)):
        changed = update_page(root / page, section(cases, suite, kept))
        print(f"{page}: tables {'updated' if changed else 'unchanged'}")
    print(f"docs/bench.json: {len(kept)} rows" + (f", {old} of them unchanged" if old else ""))
