"""`doit explain NAME`: which stages of a recipe would run, and why."""

from __future__ import annotations

from typing import Any

from pipeline.commands.command import Command, words
from pipeline.commands.reported import reported
from pipeline.commands.tasks import given_variables, recipes_given
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.errors import PipelineError, RecipeError, list_known
from pipeline.keys.explain import Explanation, compared_with, explain, folders_of
from pipeline.plugins.registry import registry_of
from pipeline.project import here
from pipeline.recipes.loader import LoadedRecipe
from pipeline.recipes.naming import PUBLISH, check_words, no_such_part, recipes_named
from pipeline.recipes.recipe_files import recipe_names
from pipeline.runs.workspace import Workspace
from stages.messages import escape


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
