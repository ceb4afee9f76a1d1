"""`doit calibrate target=NAME`: measure kernels on the target's simulator and write the table tensorize chooses by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import randrange
from typing import TYPE_CHECKING, Any

from doit import doit_cmd

from pipeline.api import run_recipe
from pipeline.commands.command import Command
from pipeline.commands.reported import reported
from pipeline.documents.overrides import check_assignments
from pipeline.errors import PipelineError, RecipeError, list_known
from pipeline.keys.groups import install
from pipeline.keys.tools import Tools
from pipeline.plugins.registry import default_registry, registry_of
from pipeline.project import Project, here, project_of
from pipeline.recipes.loader import load_recipe, load_recipes
from pipeline.recipes.recipe_files import recipe_names
from pipeline.recipes.targets import load_targets
from pipeline.runs.session import Display
from pipeline.terminal.progress import ProgressDisplay
from stages.base import StageError
from stages.messages import escape
from stages.messages.wording import did_you_mean
from stages.system.asides import write_whole

if TYPE_CHECKING:
    from stages.calibrate.judge import Judged
    from stages.graph import Graph
    from stages.targets.spec import Target

CALIBRATION = "calibrate"
_MOST_DRAWN = 2_000
VARIABLES = ("target", "recipes", "model", "set", "drawn", "seed")


class Calibrate(Command):
    """`doit calibrate target=NAME [recipes=a,b]`."""

    name = "calibrate"
    variables = VARIABLES
    doc_purpose = "measure what kernels cost on a target; tensorize chooses by it"
    doc_usage = "target=NAME [recipes=a,b] [model=… set=…] [--all | --check], or target=NAME drawn=200 [seed=1]"
    doc_description = (
        "Writes stages/kernels/costs/NAME.json: instructions of every kernel for every layer of the recipes (all of "
        "the target's family if none are named, and a grid of single operators), each compared with the integer "
        "reference. "
        "Only what the table lacks, or has from another version of a kernel, is measured. With drawn= it measures so "
        "many layers drawn at random in all ways, and says how far what the table chooses is from the best: exit code "
        "1 when a layer is over 5 % behind. Each run draws others, seed= repeats one."
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
            "name": "check",
            "long": "check",
            "short": "",
            "type": bool,
            "default": False,
            "help": "measure nothing: say what is missing or stale, exit code 1 if anything is",
        },
    )

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Measure, and print what was done. Returns the exit code."""
        return reported(lambda: _run(dict(doit_cmd._CMDLINE_VARS or {}), opt_values))


@dataclass(frozen=True)
class Outcome:
    """What there was to measure: `cases` in all, `missing` of them not in the table, entries of `stale` kernels."""

    table: Path
    cases: int
    missing: tuple[str, ...]
    stale: tuple[str, ...]
    entries: int


def calibrate(
    target_name: str,
    recipes: tuple[str, ...] = (),
    *,
    again: bool = False,
    check: bool = False,
    overrides: Mapping[str, str] | None = None,
    root: Path | Project | None = None,
    display: Display | None = None,
    install: Callable[[str], bool] | None = None,
) -> Outcome:
    """Measure what the table of a target lacks for `recipes`; none: all of the target's family, and the grid.

    `again` measures also what the table has; `check` measures and writes nothing. `overrides` are `model` and `set`,
    for each recipe; `install` is as of run_recipe. Raises PipelineError.
    """
    project = here() if root is None else project_of(root)
    target = _measurable(target_name, project)
    given = {**(overrides or {}), "target": target_name}
    try:
        graphs = _graphs(target, recipes, given, project, display, install)
        return _calibrate(target, graphs, again=again, check=check, project=project, display=display)
    except StageError as error:
        raise PipelineError(f"{CALIBRATION}: {error}") from error


def judge(
    target_name: str,
    count: int,
    seed: int,
    *,
    root: Path | Project | None = None,
    display: Display | None = None,
) -> list[Judged]:
    """Draws `count` layers and measures how far what a target's costs choose is from the best; the worst first.

    Raises PipelineError.
    """
    from stages.calibrate.drawn import drawn
    from stages.calibrate.judge import judge as judged
    from stages.tensorize import cost_table
    from stages.tensorize.costs import CostTable

    project = here() if root is None else project_of(root)
    target = _measurable(target_name, project)

    def progress(message: str, fraction: float | None = None) -> None:
        if display is not None:
            display.progress(target.name, CALIBRATION, message, fraction)

    table = next(filter(Path.is_file, (cost_table(target.core, folder) for folder in project.folders)), None)
    try:
        costs = None if table is None else CostTable.read(table)
        return judged([*drawn(seed, count)], target, costs, progress=progress)
    except StageError as error:
        raise PipelineError(f"{CALIBRATION}: {error}") from error


def _measurable(name: str, project: Project) -> Target:
    """The core of that name. Raises PipelineError for what has no costs of its own."""
    targets = load_targets(project)
    if name not in targets:
        message = f"unknown target '{escape.name(name)}'{did_you_mean(name, targets)}"
        raise RecipeError(message, hint=list_known("targets", targets))
    target = targets[name]
    if target.core != target.name:
        raise PipelineError(f"{target.name} is a board, costs are its core's: doit calibrate target={target.core}")
    if target.counter == "none":
        raise PipelineError(f"target {target.name} counts no instructions, so there is nothing to calibrate by")
    return target


def _calibrate(
    target: Target,
    graphs: Iterator[Graph],
    *,
    again: bool,
    check: bool,
    project: Project,
    display: Display | None,
) -> Outcome:
    from stages.calibrate.cases import cases
    from stages.calibrate.table import Table
    from stages.tensorize import cost_table

    path = cost_table(target.core, project.root)
    # A project's own table begins with what is built in.
    places = (cost_table(target.core, folder) for folder in project.folders)
    table = Table.read(next(filter(Path.is_file, places), path), target)
    wanted = cases(graphs, target)
    missing = wanted if again else table.missing(wanted)
    table.describe(wanted)
    if not check:
        from stages.calibrate.measure import measure

        def progress(message: str, fraction: float | None = None) -> None:
            if display is not None:
                display.progress(target.name, CALIBRATION, message, fraction)

        try:
            for case, instructions in measure(missing, target, progress=progress):
                table.add(case, instructions)
        finally:  # what was measured before a failure is kept
            table.tools = versions(target, project.root) if missing else table.tools
            write_whole(path, table.text(target))
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
    """The integer graphs of the recipes, and the grid when no recipes are named."""
    from stages.graph import Graph

    for name in recipes or _recipes_of_family(target, project):
        # In a folder of its own: the recipe's log.txt is of its own last run.
        build = project.root / "build" / CALIBRATION
        loaded = load_recipe(name, root=project, registry=registry_of(project), variables=given)
        last = loaded.chain.provider("quantize")
        result = run_recipe(name, given, until=last, root=project, build=build, display=display, install=install)
        yield Graph.load(result.artifacts[last])
    if not recipes:
        from stages.calibrate.grid import grid

        if display is not None:
            display.progress(target.name, CALIBRATION, "making the layers of the grid", None)
        yield from grid()


def _recipes_of_family(target: Target, project: Project) -> Iterator[str]:
    """Recipes whose own target is of the same family, and of such matrices what they have on this target."""
    registry = default_registry()
    for name in recipe_names(project, built_in=False):
        found = load_recipes(name, root=project, registry=registry)
        if not any(loaded.target.family == target.family for loaded in found):
            continue
        if len(found) > 1:
            found = load_recipes(name, root=project, registry=registry, variables={"target": target.name})
        yield from (loaded.title for loaded in found)


def versions(target: Target, root: Path) -> dict[str, str]:
    """Of what the instruction counts depend on beside the kernels: the compiler, TVM and the simulator."""
    registry = default_registry()
    tools = Tools(root / ".firmline" / "tools.json")
    wanted = [
        tool
        for kind in ("tensorize", "compile", "simulate")
        for tool in registry[kind].tools(registry[kind].config(), target)
        if tool.name in ("tvm", "compiler", "spike", target.simulator.command)
    ]
    return {tool.name: tools.identify(tool).version for tool in wanted}


def _run(given: dict[str, str], options: Mapping[str, Any]) -> int:
    check_assignments(given.items(), VARIABLES)
    target = given.pop("target", "")
    if not target:
        known = list_known("targets", load_targets(here()))
        raise RecipeError("which target? `doit calibrate target=NAME`", hint=known)
    if "drawn" in given or "seed" in given:
        return _judge(target, given, options)
    names = tuple(dict.fromkeys(name.strip() for name in given.pop("recipes", "").split(",") if name.strip()))
    if given and not names:
        raise PipelineError(f"{'= and '.join(given)}= changes recipes: name them with recipes=")
    display = ProgressDisplay()
    try:
        outcome = calibrate(
            target,
            names,
            again=options["all"],
            check=options["check"],
            overrides=given,
            display=display,
            install=install,
        )
    finally:
        display.close()
    for name in outcome.stale:
        print(f"stale: {name} has changed since it was measured")
    shown = here().shown(outcome.table)
    if not options["check"]:
        print(f"{shown}: measured {len(outcome.missing)}, {outcome.entries} measurements in all")
        return 0
    for line in outcome.missing:
        print(f"missing: {escape.line(line)}")
    print(f"{shown}: {outcome.cases - len(outcome.missing)} of {outcome.cases} measurements are there")
    return 1 if outcome.missing or outcome.stale else 0


def _judge(target: str, given: Mapping[str, str], options: Mapping[str, Any]) -> int:
    others = [f"{name}=" for name in given if name not in ("drawn", "seed")]
    others += [f"--{name}" for name in ("all", "check") if options[name]]
    if others or "drawn" not in given:
        raise PipelineError(
            f"{others[0]} does not go with drawn=" if others else "seed= goes with drawn=, as drawn=200"
        )
    count = _number("drawn", given["drawn"], _MOST_DRAWN)
    seed = _number("seed", given["seed"], 2**31) if "seed" in given else randrange(1, 2**31)
    display = ProgressDisplay()
    try:
        found = judge(target, count, seed, display=display)
    finally:
        display.close()
    from stages.calibrate.judge import TOLERANCE

    behind = [one for one in found if one.behind > TOLERANCE]
    for one in behind:
        counts = f"{one.chosen:,} instructions, {one.best:,} best"
        print(f"{100 * one.behind:6.1f} % behind: {escape.line(one.layer)}: {counts}")
        for change in one.changes:
            print(f"          {escape.line(change)}")
    print(
        f"{len(behind)} of {len(found)} layers over {100 * TOLERANCE:.0f} % behind the best; drawn={count} seed={seed}"
    )
    return 1 if behind else 0


def _number(name: str, text: str, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
        raise PipelineError(f"{name}={escape.name(text)}: should be a number from 1 to {most:,}")
    return int(text)
