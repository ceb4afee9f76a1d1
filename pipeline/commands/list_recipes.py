"""`doit list`: doit's own, about recipes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from doit.cmd_list import List as DoitList
from doit.cmdparse import CmdParseError

from pipeline.commands.command import JSON, Common, variables
from pipeline.documents.overrides import RECIPE_VARIABLES
from stages.messages import escape


class List(Common, DoitList):  # type: ignore[misc]
    """`doit list`."""

    name = "list"
    doc_purpose = "list recipes: model, target, what each is for"
    doc_usage = "[NAME...] [--all] [--json]"
    doc_description = "With names, these; with --all the sub-recipes of matrices too, and of a recipe its stages."
    names = "recipes"
    variables = RECIPE_VARIABLES
    cmd_options = (*DoitList.cmd_options, JSON)
    offered = ("subtasks", "quiet", "sort", "json")

    def execute(self, opt_values: Any, pos_args: list[str]) -> Any:
        """Returns the exit code; a word that names no recipe is an error, a glob names several."""
        from pipeline.commands.tasks import check_named
        from pipeline.plugins.registry import registry_of
        from pipeline.project import current_project
        from pipeline.recipes.recipe_arguments import matching_recipes

        pos_args = check_named(pos_args)
        given = list(variables())
        if given and not pos_args and "recipe" not in given:
            raise CmdParseError(f"doit list: {given[0]}= is about recipes: name them")
        named = [
            one
            for word in pos_args
            for one in (
                matching_recipes([word], current_project(), registry_of(current_project())) if "*" in word else [word]
            )
        ]
        if opt_values["json"]:
            print(json.dumps(_records(named, parts=opt_values["subtasks"]), indent=1))
            return 0
        return super().execute(opt_values, named)

    def _print_task(self, template: str, task: Any, *_: Any) -> None:
        self.outstream.write(f"{escape.line(template.rstrip().format(name=task.name, doc=task.doc))}\n")


def _records(named: Sequence[str], *, parts: bool) -> list[dict[str, Any]]:
    """What each recipe says of itself; `error` is '' where it can be read.

    A matrix has '' for the model or the target where that is an axis of it. With `parts` its sub-recipes follow it.
    """
    from pipeline.project import current_project
    from pipeline.recipes.loader import describe_recipe
    from pipeline.recipes.recipe_files import is_built_in, recipe_names

    found = []
    for name in recipe_names(current_project(), nested=True):
        if not named or name in named:
            one = describe_recipe(name, current_project())
            model, target = one.columns or ("", "")
            own = {"name": name, "model": model, "target": target, "purpose": one.purpose, "matrix": one.matrix}
            found.append({**own, "built_in": is_built_in(name, current_project()), "error": one.error})
            if parts and one.matrix:
                found += _parts(found[-1])
    return found


def _parts(matrix: dict[str, Any]) -> list[dict[str, Any]]:
    """The sub-recipes of a matrix, as its own record; where they cannot be read that record has the `error`."""
    from pipeline.errors import PipelineError
    from pipeline.plugins.registry import registry_of
    from pipeline.project import current_project
    from pipeline.recipes.loader import load_recipes, model_label
    from stages.base import StageError

    try:
        members = load_recipes(matrix["name"], root=current_project(), registry=registry_of(current_project()))
    except (PipelineError, StageError) as error:  # the second of a plug-in that it needs
        matrix["error"] = str(error).splitlines()[0]
        return []
    found = []
    for member in members:
        model = model_label(member.recipe.model.model_dump(mode="json"))
        own = {"name": member.title, "model": model, "target": member.target.name, "matrix": False}
        found.append({**matrix, **own})
    return found
