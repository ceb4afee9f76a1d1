"""`doit list`: doit's own, about recipes."""

from __future__ import annotations

from typing import Any

from doit.cmd_list import List as DoitList
from doit.cmdparse import CmdParseError

from pipeline.commands.command import Common, words
from pipeline.documents.overrides import RECIPE_VARIABLES
from stages.messages import escape


class List(Common, DoitList):  # type: ignore[misc]
    """`doit list`."""

    name = "list"
    doc_purpose = "list recipes: model, target, what each is for"
    doc_usage = "[NAME...] [--all]"
    doc_description = "With names, these; with --all the sub-recipes of matrices too, and of a recipe its stages."
    names = "recipes"
    variables = RECIPE_VARIABLES
    offered = ("subtasks", "quiet", "sort")

    def execute(self, opt_values: Any, pos_args: list[str]) -> Any:
        """Returns the exit code; a word that names no recipe is an error, a glob names several."""
        from pipeline.commands.tasks import check_named
        from pipeline.plugins.registry import registry_of
        from pipeline.project import here
        from pipeline.recipes.naming import recipes_named

        pos_args = check_named(pos_args)
        given = [word.partition("=")[0] for word in words() if "=" in word]
        if given and not pos_args and "recipe" not in given:
            raise CmdParseError(f"doit list: {given[0]}= is about recipes: name them")
        named = [
            one
            for word in pos_args
            for one in (recipes_named([word], here(), registry_of(here())) if "*" in word else [word])
        ]
        return super().execute(opt_values, named)

    def _print_task(self, template: str, task: Any, *_: Any) -> None:
        self.outstream.write(f"{escape.line(template.rstrip().format(name=task.name, doc=task.doc))}\n")
