"""`doit calibrate target=NAME`: measure kernels on the target's simulator and write the table tensorize chooses by."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doit import doit_cmd

from pipeline.api import run_recipe
from pipeline.commands.calibrate_drawn import of_drawn
from pipeline.commands.calibrating import CALIBRATION, Outcome, displayed, kept, measured, sampled, shown_by, table_of
from pipeline.commands.command import JSON, Command
from pipeline.commands.executing import EXECUTOR, chosen, executing
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.measurable import measurable, timed, tools_of
from pipeline.commands.reported import reported
from pipeline.documents.overrides import check_assignments
from pipeline.errors import PipelineError, RecipeError, list_known
from pipeline.keys.groups import install
from pipeline.plugins.registry import registry_of
from pipeline.project import Project, here, project_of
from pipeline.recipes.loader import load_recipe, load_recipes
from pipeline.recipes.recipe_files import recipe_names
from pipeline.recipes.targets import load_targets
from pipeline.runs.session import Display
from stages.base import StageError
from stages.messages import escape

if TYPE_CHECKING:
    from stages.graph import Graph
    from stages.targets.spec import Target

VARIABLES = ("target", "recipes", "model", "set", "drawn", "close", "seed")


class Calibrate(Command):
    """`doit calibrate target=NAME [recipes=a,b]`."""

    name = "calibrate"
    variables = VARIABLES
    own = (EXECUTOR,)
    doc_purpose = "measure what kernels cost on a target; tensorize chooses by it"
    doc_usage = (
        "target=NAME [recipes=a,b] [model=… set=…] [executor=tls://…] [--all | --sample | --check] [--cycles] "
        "[--json], or target=NAME drawn=200 [seed=1], or target=NAME close=40 [seed=1]"
    )
    doc_description = (
        "Writes stages/kernels/costs/NAME.json: instructions of every kernel for every layer of the recipes (all of "
        "the target's family if none are named, and a grid of single operators), each compared with the integer "
        "reference. "
        "Only what the table lacks, or has from another version of a kernel, is measured. With drawn= it measures so "
        "many layers drawn at random in all ways, and says how far what is chosen is from the best, by the table alone "
        "and with `measure: close`: exit code 3 when a layer is over 5 % behind with that. With close= it draws "
        "thirty times as many layers as that, measures those whose best kernel is least certain, and keeps them in the "
        "table, so that later choices of their kind are right. Each run draws others, seed= repeats one. With --cycles "
        "it measures how many cycles of the target's timing model an instruction of each kernel takes, on a few layers "
        "(of the grid, or of the recipes), for recipes with `optimize_for: cycles`: the target may be a board, whose "
        "flash counts."
    )
    cmd_options = (
        {
            "name": "all",
            "long": "all",
            "short": "",
            "type": bool,
            "default": False,
            "help": "measure also what the table has",
        },
        {
            "name": "sample",
            "long": "sample",
            "short": "",
            "type": bool,
            "default": False,
            "help": "of changed kernels measure one case in ten, and keep the others where all of these are as before",
        },
        {
            "name": "check",
            "long": "check",
            "short": "",
            "type": bool,
            "default": False,
            "help": "measure nothing: say what is missing or stale, exit code 3 if anything is",
        },
        {
            "name": "cycles",
            "long": "cycles",
            "short": "",
            "type": bool,
            "default": False,
            "help": "measure cycles for an instruction, by the target's timing model",
        },
        JSON,
    )

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Measure, and print what was done. Returns the exit code."""

        def work() -> int:
            with executing(self.given):
                return _run(dict(doit_cmd._CMDLINE_VARS or {}), opt_values)

        return reported(work)


def calibrate(
    target_name: str,
    recipes: tuple[str, ...] = (),
    *,
    again: bool = False,
    sample: bool = False,
    check: bool = False,
    cycles: bool = False,
    overrides: Mapping[str, str] | None = None,
    root: Path | Project | None = None,
    display: Display | None = None,
    install: Callable[[str], bool] | None = None,
) -> Outcome:
    """Measure what the table of a target lacks for `recipes`; none: all of the target's family, and the grid.

    `again` measures also what the table has; `sample` keeps what kernels took before their code changed, where one case
    in ten takes that still; `check` measures and writes nothing. With `cycles` it is the table of cycles, of a core or
    a board, and no recipes are the grid alone. `overrides` are `model` and `set`, for each recipe; `install` is as of
    run_recipe. Raises PipelineError.
    """
    project = here() if root is None else project_of(root)
    target = timed(target_name, project) if cycles else measurable(target_name, project)
    given = {**(overrides or {}), "target": target_name}
    try:
        if cycles:
            from stages.calibrate.grid import grid

            some = _graphs(target, recipes, given, project, display, install) if recipes else grid()
            return _calibrate_cycles(target, some, again=again, check=check, project=project, display=display)
        graphs = _graphs(target, recipes, given, project, display, install)
        whole = not recipes
        ways = _Ways(again=again, sample=sample, check=check, whole=whole)
        return _calibrate(target, graphs, ways, project=project, display=display)
    except StageError as error:
        raise PipelineError(f"{CALIBRATION}: {error}") from error


@dataclass(frozen=True)
class _Ways:
    """What of a table is measured: see `calibrate`; the `whole` one has more than the layers of recipes."""

    again: bool
    sample: bool
    check: bool
    whole: bool


def _calibrate(
    target: Target, graphs: Iterator[Graph], ways: _Ways, *, project: Project, display: Display | None
) -> Outcome:
    from stages.calibrate.cases import cases
    from stages.calibrate.close import graphs_of
    from stages.calibrate.grid import awkward

    path, table = table_of(target, project)
    graphs = chain(graphs, graphs_of(table.close)) if ways.whole else graphs
    wanted = cases(graphs, target, awkward() if ways.whole else ())
    missing = wanted if ways.again else table.missing(wanted)
    table.describe(wanted)
    shown = shown_by(target, display)
    if ways.sample:
        missing = sampled(table, missing, target, shown)
    if not ways.check:
        path = measured(table, missing, target, project, shown)
    names = tuple(f"{case.variant}: {case.signature}" for case in missing)
    return Outcome(path, len(wanted), names, table.stale, table.entries())


def _calibrate_cycles(
    target: Target,
    graphs: Iterator[Graph],
    *,
    again: bool,
    check: bool,
    project: Project,
    display: Display | None,
) -> Outcome:
    from stages.calibrate.cases import cases
    from stages.calibrate.cycles import CyclesFile, sample
    from stages.tensorize import cycle_table

    path = cycle_table(target.name, project.root)
    places = (cycle_table(target.name, folder) for folder in project.folders)
    table = CyclesFile.read(next(filter(Path.is_file, places), path), target)
    wanted = sample(cases(graphs, target))
    missing = wanted if again else table.missing(wanted)
    if not check:
        from stages.calibrate.measure import measure_both

        progress = shown_by(target, display)
        begin = chosen().beginning(tools_of(target))
        with kept(table, missing, target, project, path, table.text):
            for case, instructions, cycles in measure_both(missing, target, progress=progress, begin=begin):
                table.add(case, instructions, cycles)
    names = tuple(f"{case.variant}: {case.signature}" for case in missing)
    return Outcome(path, len(wanted), names, table.stale, table.entries())


def _graphs(
    target: Target,
    recipes: tuple[str, ...],
    given: Mapping[str, str],
    project: Project,
    display: Display | None,
    install: Callable[[str], bool] | None,
) -> Iterator[Graph]:
    """The integer graphs of the recipes, and the grid when no recipes are named.

    Of all recipes those that fail are told and left out; one that was named is an error.
    """
    from stages.graph import Graph

    for name in recipes or _recipes_of_family(target, project):
        # In a folder of its own: the recipe's log.txt is of its own last run.
        build = project.root / "build" / CALIBRATION
        try:
            loaded = load_recipe(name, root=project, registry=registry_of(project), variables=given)
            last = loaded.chain.provider("quantize")
            result = run_recipe(
                name, given, until=last, root=project, build=build, display=display, install=install, executor=chosen()
            )
        except PipelineError as error:
            if recipes:
                raise
            sys.stderr.write(f"warning: {name} is left out: {escape.message(error.message)}\n")
            continue
        yield Graph.load(result.artifacts[last])
    if not recipes:
        from stages.calibrate.grid import grid

        if display is not None:
            display.progress(target.name, CALIBRATION, "making the layers of the grid", None)
        yield from grid()


def _recipes_of_family(target: Target, project: Project) -> Iterator[str]:
    """Recipes whose own target is of the same family, and of such matrices what they have on this target."""
    registry = registry_of(project)
    for name in recipe_names(project, built_in=False):
        found = load_recipes(name, root=project, registry=registry)
        if not any(loaded.target.family == target.family for loaded in found):
            continue
        if len(found) > 1:
            found = load_recipes(name, root=project, registry=registry, variables={"target": target.name})
        yield from (loaded.title for loaded in found)


def _run(given: dict[str, str], options: Mapping[str, Any]) -> int:
    check_assignments(given.items(), VARIABLES)
    target = given.pop("target", "")
    if not target:
        known = list_known("targets", load_targets(here()))
        raise RecipeError("which target? `doit calibrate target=NAME`", hint=known)
    if given.keys() & {"drawn", "close", "seed"}:
        return of_drawn(target, given, options)
    names = tuple(dict.fromkeys(name.strip() for name in given.pop("recipes", "").split(",") if name.strip()))
    if given and not names:
        raise PipelineError(f"{'= and '.join(given)}= changes recipes: name them with recipes=")
    if options["sample"] and (options["all"] or options["check"] or options["cycles"]):
        raise PipelineError("--sample goes with none of --all, --check and --cycles")
    with displayed(as_json=options["json"]) as display:
        outcome = calibrate(
            target,
            names,
            again=options["all"],
            sample=options["sample"],
            check=options["check"],
            cycles=options["cycles"],
            overrides=given,
            display=display,
            install=install,
        )
    if options["json"]:
        print(json.dumps(_record(outcome, check=options["check"]), indent=1))
    else:
        _tell(outcome, check=options["check"])
    return PENDING if options["check"] and (outcome.missing or outcome.stale) else 0


def _record(outcome: Outcome, *, check: bool) -> dict[str, Any]:
    """As JSON has it: {table, cases, entries, stale, missing} with --check, else `measured` in place of `missing`."""
    found = {"table": here().shown(outcome.table), "cases": outcome.cases, "entries": outcome.entries}
    return {**found, "stale": outcome.stale, "missing" if check else "measured": outcome.missing}


def _tell(outcome: Outcome, *, check: bool) -> None:
    for name in outcome.stale:
        print(f"stale: {name} has changed since it was measured")
    shown = here().shown(outcome.table)
    if not check:
        print(f"{shown}: measured {len(outcome.missing)}, {outcome.entries} measurements in all")
        return
    for line in outcome.missing:
        print(f"missing: {escape.line(line)}")
    print(f"{shown}: {outcome.cases - len(outcome.missing)} of {outcome.cases} measurements are there")
