"""`doit explain NAME`: which stages of a recipe would run, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline.commands.catalogue.listing import JSON
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
    doc_usage = "NAME... [target=… model=… set=…] [--check] [--json]"
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
        JSON,
    )

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Print one line per stage, and below it the reasons. Returns the exit code."""
        return reported(lambda: self._explain(opt_values["check"], opt_values["json"], pos_args))

    def _explain(self, check: bool, as_json: bool, named: list[str]) -> int:
        if not as_json:
            return 1 if print_explanations(named) and check else 0
        found = [one for one, _ in explanations(named)]
        print(json.dumps([one.record() for one in found], indent=1))
        return 1 if check and any(one.pending for one in found) else 0


@dataclass(frozen=True)
class Explained:
    """A recipe on a target: what each stage would do, or the message of why it cannot be planned.

    `compared` says with which run, `code` has the folders whose code each stage depends on, by its kind.
    """

    title: str
    target: str
    compared: str = ""
    stages: tuple[Explanation, ...] = ()
    code: Mapping[str, Sequence[str]] = field(default_factory=dict)
    error: str = ""

    @property
    def pending(self) -> bool:
        """Whether a stage would run, or may."""
        return bool(self.error) or any(not stage.cached or stage.unless for stage in self.stages)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        stages = [{**asdict(stage), "code": list(self.code[stage.kind])} for stage in self.stages]
        own = {"recipe": self.title, "target": self.target, "pending": self.pending, "compared": self.compared}
        return {**own, "error": self.error, "stages": stages}


def explanations(named: Sequence[str]) -> Iterator[tuple[Explained, bool]]:
    """All recipes that the command line names, some as far as one stage, and whether each is alone, not one of many.

    Raises RecipeError, and what hinders planning a recipe that is alone.
    """
    given = given_variables(words())
    check_words(named, [], here())
    found = dict.fromkeys((name, "") for name in recipes_given(given))
    parts = (*registry_of(here()).kinds, PUBLISH)
    for word in named:
        recipe, _, part = word.rpartition(":")
        is_part = bool(recipe) and part in parts
        if is_part and recipe.rpartition(":")[2] in parts:
            name, _, rest = recipe.partition(":")
            raise no_such_part(name, rest, (), registry_of(here()))
        until = part if is_part and part != PUBLISH else ""
        names = recipes_named([recipe if is_part else word], here(), registry_of(here()))
        found |= dict.fromkeys((name, until) for name in names)
    given.pop("recipe", None)
    if not found:
        raise RecipeError("which recipe? `doit explain NAME`", hint=list_known("recipes", recipe_names(here())))
    with Workspace() as workspace:
        for name, until in found:
            members = workspace.load(name, given)
            for loaded in members:
                yield _explained(workspace, loaded, until, alone=len(members) == 1), len(members) == 1


def _explained(workspace: Workspace, loaded: LoadedRecipe, until: str, *, alone: bool) -> Explained:
    title, target = loaded.title, loaded.target.name
    try:
        plan = workspace.planner.plan(loaded, until)
        stages = tuple(explain(plan, workspace.store))
    except PipelineError as error:
        if alone:
            raise
        # As when it is run: one that cannot be planned does not hide the others.
        return Explained(title, target, error=str(error))
    code = {stage.kind: folders_of(plan[stage.kind]) for stage in stages}
    return Explained(title, target, compared_with(plan, workspace.store), stages, code)


def print_explanations(named: Sequence[str]) -> bool:
    """Print the stages of a recipe; of one among many, only those that would run. Returns whether any would."""
    pending = False
    for one, alone in explanations(named):
        pending |= one.pending
        title = escape.line(f"{one.title} on {one.target}")
        if one.error:
            print(f"{title}\n  {escape.message(one.error).replace(chr(10), chr(10) + '  ')}")
            continue
        print(f"{title}{escape.line(f', {one.compared}' if alone or one.pending else ': cached')}")
        for stage in one.stages:
            if alone or not stage.cached or stage.unless:
                print(f"  {stage.kind:12} {_state(stage)}")
                for reason in stage.reasons:
                    print(f"    {escape.line(reason)}")
            if alone:
                print(escape.line(f"    code: {', '.join(one.code[stage.kind])}"))
    return pending


def _state(stage: Explanation) -> str:
    if not stage.cached:
        return "will run"
    if not stage.unless:
        return "cached"
    several = "leave" if len(stage.unless) > 1 else "leaves"
    return f"cached, if {' and '.join(stage.unless)} {several} the same bytes as before"
