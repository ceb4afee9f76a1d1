"""`doit tune NAME`: measures a network's own layers on the simulator, for the recipe to choose by."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doit import doit_cmd

from pipeline.api import run_recipe
from pipeline.commands.calibrating import displayed
from pipeline.commands.command import JSON, Command
from pipeline.commands.executing import EXECUTOR, chosen, executing
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.measurable import tools_of, versions
from pipeline.commands.reported import reported
from pipeline.commands.tasks import recipes_given
from pipeline.documents.overrides import check_assignments, parse_overrides
from pipeline.errors import PipelineError, RecipeError, list_known
from pipeline.keys.groups import install
from pipeline.plugins.registry import registry_of
from pipeline.project import Project, here, project_of
from pipeline.recipes.loader import LoadedRecipe, load_recipe
from pipeline.recipes.naming import PUBLISH, check_words, recipes_named
from pipeline.recipes.recipe_files import recipe_names
from pipeline.runs.session import Display
from stages.base import StageError
from stages.messages import escape
from stages.system.asides import check_writable

if TYPE_CHECKING:
    from stages.calibrate.tuning import Tuning
    from stages.graph import Graph
    from stages.tensorize.costs import CostTable

TUNE, TENSORIZE = "tune", "tensorize"
VARIABLES = ("recipe", "target", "set")
_CHANGED = ("stages", TENSORIZE)  # what `set=` may change: of another network, or compiled otherwise, it would be all
_SHOWN = 12  # changes, and what --check has to say


class Tune(Command):
    """`doit tune NAME [target=NAME]`."""

    name = TUNE
    names = "recipes"
    variables = VARIABLES
    own = (EXECUTOR,)
    doc_purpose = "measure a network's own layers on the simulator; its recipe then chooses by that"
    doc_usage = (
        "NAME... | recipe=a,b [target=NAME] [set=stages.tensorize.…] [executor=tls://…] [--all | --check] [--json]"
    )
    doc_description = (
        "Writes NAME.tuning.json beside the recipe: instructions of every kernel for every layer of this network, in "
        "every form and layout that tensorize weighs, each compared with the integer reference; estimated cycles for a "
        "recipe with `optimize_for: cycles`. The recipe reads it "
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
            "help": "measure nothing: say what is stale or missing, exit code 3 if anything is",
        },
        JSON,
    )

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Measure, and print what changes. Returns the exit code."""

        def work() -> int:
            with executing(self.given):
                return _run(dict(doit_cmd._CMDLINE_VARS or {}), opt_values, pos_args)

        return reported(work)


@dataclass(frozen=True)
class Outcome:
    """What a tuning came to.

    stale         kernels that the file has of another version, or that are no more
    others        lines: tools and options of the compiler that the file has otherwise
    missing       lines: what is not measured, with `check` alone
    measured      how many measurements were made; 0 with `check`
    lost          layers that the file has and the network has not
    before, now   instructions (or `unit`) of all layers, chosen without and with the file; 0 with `check`
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
    unit: str = "instructions"

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
    """Measures what the recipe's tuning lacks. `overrides` may have `target` and `set`; `install` as of run_recipe.

    `again` measures also what it has; `check` measures and writes nothing. Raises PipelineError.
    """
    project = here() if root is None else project_of(root)
    _check_changes(overrides or {})
    loaded = load_recipe(recipe, root=project, registry=registry_of(project), variables=overrides)
    path = _place(loaded, project)
    _refuse(loaded)
    if not check:
        _check_writable(path, project)
    try:
        graph = _graph(recipe, loaded, overrides or {}, project, display, install)
        return _tune(loaded, graph, path, again=again, check=check, project=project, display=display)
    except StageError as error:
        hint = f"\n{error.hint}" if error.hint else ""
        raise PipelineError(f"{TUNE} {escape.name(loaded.title)}: {error.message}{hint}") from error


def _check_changes(given: Mapping[str, str]) -> None:
    for override in parse_overrides({name: value for name, value in given.items() if name == "set"}):
        if override.path[:2] != _CHANGED:
            message = f"{override.shown}: a tuning is measured with other options of tensorize only"
            hint = "such as set=stages.tensorize.optimize_for=cycles; another network is another recipe"
            raise RecipeError(message, hint=hint)


def _place(loaded: LoadedRecipe, project: Project) -> Path:
    if loaded.tuning is None:
        raise PipelineError("a recipe that is no file has no place beside it for a tuning")
    if not loaded.tuning.is_relative_to(project.root):
        message = f"recipe '{loaded.title}' is Firmline's own: its tuning would lie in the installation"
        raise PipelineError(message, hint=f"write a recipe of yours that has `extends: {loaded.recipe.name}`")
    return loaded.tuning


def _check_writable(path: Path, project: Project) -> None:
    try:
        check_writable(path)
    except OSError as error:
        raise PipelineError(f"{escape.name(project.shown(path))} cannot be written: {error.strerror}") from None


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
    result = run_recipe(
        recipe, given, until=last, root=project, build=build, display=display, install=install, executor=chosen()
    )
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
    from stages.tensorize.cycles import check_timed

    target = loaded.target
    config = loaded.recipe.config("tensorize") or TensorizeConfig()
    assert isinstance(config, TensorizeConfig)
    if loaded.recipe.memory.arena_limit is not None and config.arena_limit is None:
        config = config.model_copy(update={"arena_limit": loaded.recipe.memory.arena_limit})
    options = loaded.recipe.config("compile")
    options = options if isinstance(options, CompileConfig) else CompileConfig()
    tools = {**versions(target, project.root), "options": " ".join((options.optimize, *options.flags))}
    in_cycles = config.optimize_for == "cycles"
    if in_cycles:
        check_timed(target)
    tuning = Tuning.read(path, target, tools, in_cycles=in_cycles, again=again)
    costs = _costs(loaded, project, in_cycles=in_cycles)
    if check:
        missing, lost = missing_of(graph, target, config, costs, tuning)
        lines = tuple(f"{case.variant}: {case.signature}" for case in missing)
        return Outcome(path, tuning.entries(), tuning.stale, lines, _own(lost, loaded), others=tuning.others)

    def progress(message: str, fraction: float | None = None) -> None:
        if display is not None:
            display.progress(loaded.title, TUNE, message, fraction)

    begin = chosen().beginning(tools_of(target))
    made = measure_all(
        graph, target, config, costs, tuning, options=options, again=again, progress=progress, begin=begin
    )
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
        unit="cycles" if in_cycles else "instructions",
    )


def _own(lost: tuple[str, ...], loaded: LoadedRecipe) -> tuple[str, ...]:
    """Of a matrix the file is for all of its networks, and for all options: what this one lacks may be another's."""
    changed = any(override.whole[:2] == _CHANGED for override in loaded.sources.overrides)
    return () if loaded.variant or changed else lost


def _forget(tuning: Tuning, lost: tuple[str, ...]) -> None:
    for signature in lost:
        del tuning.layers[signature]
    tuning.write()


def _costs(loaded: LoadedRecipe, project: Project, *, in_cycles: bool) -> CostTable | None:
    from stages.tensorize import cost_table, cycle_files
    from stages.tensorize.costs import CostTable
    from stages.tensorize.cycles import cycle_tables

    places = (cost_table(loaded.target.core, folder) for folder in project.folders)
    found = next(filter(Path.is_file, places), None)
    costs = None if found is None else CostTable.read(found)
    if not in_cycles:
        return costs
    cycles, _ = cycle_tables(cycle_files(loaded.target, project.folders), loaded.target)
    return replace(costs or CostTable(), cycles=cycles)


def _run(given: dict[str, str], options: Mapping[str, Any], words: Sequence[str]) -> int:
    check_assignments(given.items(), VARIABLES)
    if options["all"] and options["check"]:
        raise PipelineError("give one of --all and --check")
    names = _named(words, given)
    given.pop("recipe", None)
    found = []
    for name in names:
        if len(names) > 1 and not options["json"]:
            print(f"{escape.line(name)}:")
        with displayed(as_json=options["json"]) as display:
            outcome = tune(name, given, again=options["all"], check=options["check"], display=display, install=install)
        pending = options["check"] and not outcome.is_current
        found.append({"recipe": name, "pending": pending, **asdict(outcome), "path": here().shown(outcome.path)})
        if not options["json"]:
            _tell(outcome, check=options["check"])
    if options["json"]:
        print(json.dumps(found, indent=1))
    return PENDING if any(one["pending"] for one in found) else 0


def _named(words: Sequence[str], given: dict[str, str]) -> list[str]:
    """The recipes of the command line, as `doit run` takes them. Raises RecipeError."""
    project, chosen = here(), recipes_given(given)
    check_words(words, chosen, project)
    for word in words:
        recipe, _, part = word.rpartition(":")
        if recipe and part in (*registry_of(project).kinds, PUBLISH):
            message = f"'{escape.name(word)}' is one stage, not a recipe"
            raise RecipeError(message, hint=f"`doit tune {escape.name(recipe)}` measures the layers of its network")
    names = chosen or recipes_named(words, project, registry_of(project))
    if not names:
        raise RecipeError("which recipe? `doit tune NAME`", hint=list_known("recipes", recipe_names(project)))
    return names


def _tell(outcome: Outcome, *, check: bool) -> None:
    shown = here().shown(outcome.path)
    for kernel in outcome.stale:
        print(f"stale: {kernel} has changed since it was measured")
    _listed("stale: all figures", outcome.others)
    if check:
        _listed("missing", outcome.missing)
        _listed("not in the network any more", outcome.lost)
        print(f"{shown}: {outcome.entries} measurements, {len(outcome.missing)} missing")
        return
    _listed("tuned" if outcome.measured else "tuned before", outcome.changes)
    print(f"{shown}: measured {outcome.measured}, {outcome.entries} measurements in all")
    saved = outcome.before - outcome.now
    print(f"{outcome.before:,} -> {outcome.now:,} {outcome.unit} ({100 * saved / max(outcome.before, 1):.1f} % less)")


def _listed(what: str, lines: tuple[str, ...]) -> None:
    for line in lines[:_SHOWN]:
        print(f"{what}: {escape.line(line)}")
    if len(lines) > _SHOWN:
        print(f"… and {len(lines) - _SHOWN} more")
