"""doit's extra commands: `doit explain NAME`, `doit gc`, `doit matrix-json`, `doit schema`.

They are plug-ins named in pyproject.toml; doit imports this module, so the project's root must be importable.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

from pipeline.command_line import Command, words
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.errors import PipelineError, RecipeError, list_known
from pipeline.keys.explain import Explanation, compared_with, explain, folders_of
from pipeline.project import here
from pipeline.recipes.json_schema import schema_file, schema_text
from pipeline.recipes.loader import LoadedRecipe
from pipeline.recipes.naming import PUBLISH, check_words, no_such_part, recipes_named
from pipeline.recipes.recipe_files import recipe_names
from pipeline.registry import registry_of
from pipeline.runs.session import Workspace
from pipeline.tasks import given_variables, recipes_given, wants_traceback
from stages import escape
from stages.asides import write_whole
from stages.targets.memory import parse_size


def reported(work: Callable[[], int]) -> int:
    """Run a command; an error becomes its message on stderr and exit code 1."""
    try:
        return work()
    except PipelineError as error:
        if wants_traceback():
            raise
        sys.stderr.write(f"ERROR: {escape.message(str(error))}\n")
        return 1


class Explain(Command):
    """`doit explain NAME`: which stages would run, and why."""

    name = "explain"
    names = "recipes"
    variables = RECIPE_VARIABLES
    doc_purpose = "say for each stage of a recipe whether it is cached, or why it will run"
    doc_usage = "NAME... [target=… model=… set=…] [--check]"
    doc_description = "Compares with the last run of the same recipe. With --check, exit code 1 if a stage would run."
    cmd_options = (
        {
            "name": "check",
            "long": "check",
            "short": "",
            "type": bool,
            "default": False,
            "help": "exit code 1 if a stage would run",
        },
    )

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Print one line per stage, and below it the reasons. Returns the exit code."""
        return reported(lambda: self._explain(opt_values["check"], pos_args))

    def _explain(self, check: bool, named: list[str]) -> int:
        given = given_variables(words())
        check_words(named, [], here())
        for word in named:
            recipe, _, part = word.rpartition(":")
            if recipe and part in (*registry_of(here()).kinds, PUBLISH):
                raise no_such_part(recipe, part, (), registry_of(here()))
        found = recipes_named(named, here(), registry_of(here()))
        names = list(dict.fromkeys([*recipes_given(given), *found]))
        given.pop("recipe", None)
        if not names:
            known = recipe_names(here())
            raise RecipeError("which recipe? `doit explain NAME`", hint=list_known("recipes", known))
        pending = False
        with Workspace() as workspace:
            for name in names:
                members = workspace.load(name, given)
                for loaded in members:
                    pending |= _explain_recipe(workspace, loaded, alone=len(members) == 1)
        return 1 if check and pending else 0


def _explain_recipe(workspace: Workspace, loaded: LoadedRecipe, *, alone: bool) -> bool:
    """Print a recipe's stages; of one among many, only those that would run. Returns whether any would."""
    title = escape.line(f"{loaded.title} on {loaded.target.name}")
    try:
        plan = workspace.planner.plan(loaded)
        stages = explain(plan, workspace.store)
    except PipelineError as error:
        if alone:
            raise
        # As when it is run: one that cannot be planned does not hide the others.
        print(f"{title}\n  {escape.message(str(error)).replace(chr(10), chr(10) + '  ')}")
        return True
    pending = any(not stage.cached or stage.unless for stage in stages)
    shown = f", {compared_with(plan, workspace.store)}" if alone or pending else ": cached"
    print(f"{title}{escape.line(shown)}")
    for stage in stages:
        if alone or not stage.cached or stage.unless:
            print(f"  {stage.kind:12} {_state(stage)}")
            for reason in stage.reasons:
                print(f"    {escape.line(reason)}")
        if alone:
            print(escape.line(f"    code: {', '.join(folders_of(plan[stage.kind]))}"))
    return pending


def _state(stage: Explanation) -> str:
    if not stage.cached:
        return "will run"
    if not stage.unless:
        return "cached"
    several = "leave" if len(stage.unless) > 1 else "leaves"
    return f"cached, if {' and '.join(stage.unless)} {several} the same bytes as before"


class MatrixJson(Command):
    """`doit matrix-json`: recipes x targets for a continuous integration service."""

    name = "matrix-json"
    variables = RECIPE_VARIABLES
    doc_purpose = "print recipes and their targets as JSON: the `include` of a GitHub Actions matrix"
    doc_usage = "[recipe=a,b] [target=… model=… set=…]"
    doc_description = "All recipes if none is named. `doit run recipe=RECIPE target=TARGET` runs an entry."

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Print one line of JSON. Returns the exit code."""
        return reported(self._print)

    def _print(self) -> int:
        given = given_variables(words())
        names = recipes_given(given) or recipe_names(here(), built_in=False)
        given.pop("recipe", None)
        with Workspace() as workspace:
            # By the name that was given: of `tiny_matrix:kws-*` a job runs no more than that.
            loaded = [(name, one) for name in names for one in workspace.load(name, given)]
        pairs = dict.fromkeys((name, one.target.name) for name, one in loaded)
        print(json.dumps([{"recipe": recipe, "target": target} for recipe, target in pairs]))
        return 0


class CollectGarbage(Command):
    """`doit gc`: trim the artifact store."""

    name = "gc"
    doc_purpose = "delete old artifacts from the store"
    doc_usage = "--days N | --size SIZE"
    doc_description = "An artifact's age counts from the last run that used it, to the day."
    cmd_options = (
        {
            "name": "days",
            "long": "days",
            "short": "",
            "type": str,
            "default": "",
            "help": "delete artifacts that no run used for this many days",
        },
        {
            "name": "size",
            "long": "size",
            "short": "",
            "type": str,
            "default": "",
            "help": "delete the oldest until this much remains, such as 500M or 2G",
        },
    )

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Delete, and print how much went. Returns the exit code."""
        return reported(lambda: self._collect(opt_values["days"], opt_values["size"]))

    def _collect(self, days: str, size: str) -> int:
        if not days and not size:
            raise PipelineError("give --days N, or --size SIZE such as 2G, or both")
        if days and not re.fullmatch(r"\d+(\.\d*)?", days):
            raise PipelineError(f"doit gc: --days {days}: should be a number of days, such as 7")
        try:
            limits: dict[str, Any] = {"days": float(days) if days else None, "size": parse_size(size) if size else None}
        except ValueError as error:
            raise PipelineError(f"doit gc: --size {size}: {error}") from None
        count, freed = Workspace().store.trim(**limits)
        print(f"deleted {count} artifacts, {freed / 1e6:.1f} MB")
        return 0


class Schema(Command):
    """`doit schema`: write the recipe's JSON Schema."""

    name = "schema"
    doc_purpose = "write recipe.schema.json, which editors use for completion in recipes"
    doc_usage = ""
    doc_description = None

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Write the file. Returns the exit code."""
        return reported(self._write)

    def _write(self) -> int:
        project = here()
        file = schema_file(project)
        name = project.shown(file)
        try:
            write_whole(file, schema_text(registry_of(here())))
        except OSError as error:
            raise PipelineError(f"{name} cannot be written: {error.strerror}") from error
        print(name)
        return 0
