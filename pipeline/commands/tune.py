"""`doit tune recipe=NAME`: measures a network's own layers on the simulator, for the recipe to choose by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doit import doit_cmd

from pipeline.api import run_recipe
from pipeline.commands.calibrate import versions
from pipeline.commands.command import Command
from pipeline.commands.reported import reported
from pipeline.documents.overrides import check_assignments
from pipeline.errors import PipelineError
from pipeline.keys.groups import install
from pipeline.plugins.registry import registry_of
from pipeline.project import Project, here, project_of
from pipeline.recipes.loader import LoadedRecipe, load_recipe
from pipeline.runs.session import Display
from pipeline.terminal.progress import ProgressDisplay
from stages.base import StageError
from stages.messages import escape

if TYPE_CHECKING:
    from stages.calibrate.tuning import Tuning
    from stages.graph import Graph
    from stages.tensorize.costs import CostTable

TUNE = "tune"
VARIABLES = ("recipe", "target")
_SHOWN = 12  # changes, and what --check has to say


class Tune(Command):
    """`doit tune recipe=NAME [target=NAME]`."""

    name = TUNE
    variables = VARIABLES
    doc_purpose = "measure a network's own layers on the simulator; its recipe then chooses by that"
    doc_usage = "recipe=NAME [target=NAME] [--all | --check]"
    doc_description = (
        "Writes NAME.tuning.json beside the recipe: instructions of every kernel for every layer of this network, in "
        "every form and layout that tensorize weighs, each compared with the integer reference. The recipe reads it "
        "from then on. It is compiled with the recipe's own options. Only what the file lacks, or has from another "
        "version of a kernel or tool or with other options, is measured; an interrupted run goes on where it was."
    )
    cmd_options = (
        {
            "name": "all",
            "long": "all",
            "short": "",
            "type": bool,
            "default": False,
            "help": "measure also what the file has",
        },
        {
            "name": "check",
            "long": "check",
            "short": "",
            "type": bool,
            "default": False,
            "help": "measure nothing: say what is stale or missing, exit code 1 if anything is",
        },
    )

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Measure, and print what changes. Returns the exit code."""
        return reported(lambda: _run(dict(doit_cmd._CMDLINE_VARS or {}), opt_values))


@dataclass(frozen=True)
class Outcome:
    """What a tuning came to.

    stale         kernels that the file has of another version, or that are no more
    others        lines: tools and options of the compiler that the file has otherwise
    missing       lines: what is not measured, with `check` alone
    measured      how many measurements were made; 0 with `check`
    lost          layers that the file has and the network has not
    before, now   instructions of all layers, chosen without and with the file; 0 with `check`
    changes       lines: what is computed otherwise
    """

    path: Path
    entries: int
    stale: tuple[str, ...]
    missing: tuple[str, ...]
    lost: tuple[str, ...]
    before: int = 0
    now: int = 0
    changes: tuple[str, ...] = ()
    measured: int = 0
    others: tuple[str, ...] = ()

    @property
    def is_current(self) -> bool:
        """Whether `check` found nothing to measure."""
        return not (self.stale or self.others or self.missing or self.lost)


def tune(
    recipe: str,
    overrides: Mapping[str, str] | None = None,
    *,
    again: bool = False,
    check: bool = False,
    root: Path | Project | None = None,
    display: Display | None = None,
    install: Callable[[str], bool] | None = None,
) -> Outcome:
    """Measures what the recipe's tuning lacks. `overrides` may have a `target`; `install` is as of run_recipe.

    `again` measures also what it has; `check` measures and writes nothing. Raises PipelineError.
    """
    project = here() if root is None else project_of(root)
    loaded = load_recipe(recipe, root=project, registry=registry_of(project), variables=overrides)
    path = _place(loaded, project)
    _refuse(loaded)
    try:
        graph = _graph(recipe, loaded, overrides or {}, project, display, install)
        return _tune(loaded, graph, path, again=again, check=check, project=project, display=display)
    except StageError as error:
        hint = f"\n{error.hint}" if error.hint else ""
        raise PipelineError(f"{TUNE} {escape.name(loaded.title)}: {error.message}{hint}") from error


def _place(loaded: LoadedRecipe, project: Project) -> Path:
    if loaded.tuning is None:
        raise PipelineError("a recipe that is no file has no place beside it for a tuning")
    if not loaded.tuning.is_relative_to(project.root):
        message = f"recipe '{loaded.title}' is Firmline's own: its tuning would lie in the installation"
        raise PipelineError(message, hint=f"write a recipe of yours that has `extends: {loaded.recipe.name}`")
    return loaded.tuning


def _refuse(loaded: LoadedRecipe) -> None:
    target = loaded.target
    if target.counter == "none":
        raise PipelineError(f"target {target.name} counts no instructions, so there is nothing to tune by")
    if target.accelerator is not None:
        raise PipelineError(f"target {target.name} has an accelerator, whose layers are planned by its own model")
    own = getattr(loaded.recipe.config("tensorize"), "tuning", None)
    if own is not None:
        raise PipelineError(
            f"recipe '{loaded.title}' says itself which tuning it reads: {own or 'off'}",
            hint="leave out stages.tensorize.tuning; the file beside the recipe is read by itself",
        )


def _graph(
    recipe: str,
    loaded: LoadedRecipe,
    given: Mapping[str, str],
    project: Project,
    display: Display | None,
    install: Callable[[str], bool] | None,
) -> Graph:
    """The integer graph that tensorize would get."""
    from stages.graph import Graph

    last = loaded.chain.provider("quantize")
    # In a folder of its own: the recipe's log.txt is of its own last run.
    build = project.root / "build" / TUNE
    result = run_recipe(recipe, given, until=last, root=project, build=build, display=display, install=install)
    return Graph.load(result.artifacts[last])


def _tune(
    loaded: LoadedRecipe,
    graph: Graph,
    path: Path,
    *,
    again: bool,
    check: bool,
    project: Project,
    display: Display | None,
) -> Outcome:
    from stages.calibrate.tuning import Tuning, missing_of
    from stages.calibrate.tuning import tune as measure_all
    from stages.compile.config import CompileConfig
    from stages.tensorize import TensorizeConfig

    target = loaded.target
    config = loaded.recipe.config("tensorize") or TensorizeConfig()
    assert isinstance(config, TensorizeConfig)
    if loaded.recipe.memory.arena_limit is not None and config.arena_limit is None:
        config = config.model_copy(update={"arena_limit": loaded.recipe.memory.arena_limit})
    options = loaded.recipe.config("compile")
    options = options if isinstance(options, CompileConfig) else CompileConfig()
    tools = {**versions(target, project.root), "options": " ".join((options.optimize, *options.flags))}
    tuning = Tuning.read(path, target, tools)
    costs = _costs(loaded, project)
    if check:
        missing, lost = missing_of(graph, target, config, costs, tuning)
        lines = tuple(f"{case.variant}: {case.signature}" for case in missing)
        return Outcome(path, tuning.entries(), tuning.stale, lines, _own(lost, loaded), others=tuning.others)

    def progress(message: str, fraction: float | None = None) -> None:
        if display is not None:
            display.progress(loaded.title, TUNE, message, fraction)

    made = measure_all(graph, target, config, costs, tuning, options=options, again=again, progress=progress)
    lost = _own(made.lost, loaded)
    if lost:
        _forget(tuning, lost)
    return Outcome(
        path,
        tuning.entries(),
        tuning.stale,
        (),
        lost,
        before=made.before,
        now=made.now,
        changes=made.changes,
        measured=made.measured,
        others=tuning.others,
    )


def _own(lost: tuple[str, ...], loaded: LoadedRecipe) -> tuple[str, ...]:
    """Of a matrix the file is for all of its networks: what this one lacks may be another's."""
    return () if loaded.variant else lost


def _forget(tuning: Tuning, lost: tuple[str, ...]) -> None:
    for signature in lost:
        del tuning.layers[signature]
    tuning.write()


def _costs(loaded: LoadedRecipe, project: Project) -> CostTable | None:
    from stages.tensorize import cost_table
    from stages.tensorize.costs import CostTable

    places = (cost_table(loaded.target.core, folder) for folder in project.folders)
    found = next(filter(Path.is_file, places), None)
    return None if found is None else CostTable.read(found)


def _run(given: dict[str, str], options: Mapping[str, Any]) -> int:
    check_assignments(given.items(), VARIABLES)
    name = given.pop("recipe", "").strip()
    if not name or "," in name:
        raise PipelineError("which recipe? `doit tune recipe=NAME`")
    if options["all"] and options["check"]:
        raise PipelineError("give one of --all and --check")
    display = ProgressDisplay()
    try:
        outcome = tune(name, given, again=options["all"], check=options["check"], display=display, install=install)
    finally:
        display.close()
    shown = here().shown(outcome.path)
    for kernel in outcome.stale:
        print(f"stale: {kernel} has changed since it was measured")
    _listed("stale: all figures", outcome.others)
    if options["check"]:
        _listed("missing", outcome.missing)
        _listed("not in the network any more", outcome.lost)
        print(f"{shown}: {outcome.entries} measurements, {len(outcome.missing)} missing")
        return 0 if outcome.is_current else 1
    _listed("tuned", outcome.changes)
    print(f"{shown}: measured {outcome.measured}, {outcome.entries} measurements in all")
    saved = outcome.before - outcome.now
    print(f"{outcome.before:,} -> {outcome.now:,} instructions ({100 * saved / max(outcome.before, 1):.1f} % less)")
    return 0


def _listed(what: str, lines: tuple[str, ...]) -> None:
    for line in lines[:_SHOWN]:
        print(f"{what}: {escape.line(line)}")
    if len(lines) > _SHOWN:
        print(f"… and {len(lines) - _SHOWN} more")
