"""`doit matrix-json`: recipes and targets for a continuous integration service."""

import json
import re
from typing import Any

from pipeline.commands.command import Command, variables
from pipeline.commands.tasks import recipe_argument
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.errors import RecipeError
from pipeline.project import current_project
from pipeline.recipes.recipe_files import recipe_names
from pipeline.runs.workspace import Workspace
from stages.support.messages import escape

# Names, paths and globs that are safe in a workflow's shell command without quotes.
_SHELL_SAFE = r"[A-Za-z0-9_./][A-Za-z0-9_./:*?+-]*"


class MatrixJson(Command):
    """`doit matrix-json`."""

    name = "matrix-json"
    group = "ship"
    examples = (("", "all recipes of the project"), ("kws_rvp target=rv64-rvp,cortex-m4", "one recipe on two cores"))
    names = "recipes"
    variables = RECIPE_VARIABLES
    doc_purpose = "print recipes and their targets as JSON: the `include` of a GitHub Actions matrix"
    doc_usage = "[NAME...] [target=… model=… set=…]"
    doc_description = (
        "Prints all recipes of the project if none is named. Run an entry with `doit run RECIPE target=TARGET`. "
        "docs/tutorials/ci.md has a workflow."
    )

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        values = variables()
        names = [*named, *recipe_argument(values)] or recipe_names(current_project(), built_in=False)
        values.pop("recipe", None)
        with Workspace() as workspace:
            # Keep the name as typed: a job for `tiny_matrix:kws-*` runs these variants only.
            members = [(name, recipe) for name in names for recipe in workspace.load(name, values)]
        for name in names:
            if not re.fullmatch(_SHELL_SAFE, name):
                message = f"recipe {escape.quoted(name)}: the name is not safe in a workflow's shell"
                raise RecipeError(message, hint="allowed: ASCII letters, digits, and _ . / : * ? + -")
        pairs = dict.fromkeys((name, recipe.target.name) for name, recipe in members)
        print(json.dumps([{"recipe": recipe, "target": target} for recipe, target in pairs]))
        return 0
