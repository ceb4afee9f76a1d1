"""`doit matrix-json`: recipes and their targets for a continuous integration service."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pipeline.commands.command import Command, variables
from pipeline.commands.reported import reported
from pipeline.commands.tasks import recipes_given
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.errors import RecipeError
from pipeline.project import current_project
from pipeline.recipes.recipe_files import recipe_names
from pipeline.runs.workspace import Workspace
from stages.messages import escape

# Names, paths and globs of recipes: what a workflow may put into a command, unquoted too.
_SHELL_SAFE = r"[A-Za-z0-9_./][A-Za-z0-9_./:*?+-]*"


class MatrixJson(Command):
    """`doit matrix-json`: recipes x targets for a continuous integration service."""

    name = "matrix-json"
    names = "recipes"
    variables = RECIPE_VARIABLES
    doc_purpose = "print recipes and their targets as JSON: the `include` of a GitHub Actions matrix"
    doc_usage = "[NAME...] [recipe=a,b] [target=… model=… set=…]"
    doc_description = "All recipes if none is named. `doit run recipe=RECIPE target=TARGET` runs an entry."

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Print one line of JSON. Returns the exit code."""
        return reported(lambda: self._print(pos_args))

    def _print(self, named: Sequence[str]) -> int:
        given = variables()
        names = [*named, *recipes_given(given)] or recipe_names(current_project(), built_in=False)
        given.pop("recipe", None)
        with Workspace() as workspace:
            # By the name that was given: of `tiny_matrix:kws-*` a job runs no more than that.
            loaded = [(name, one) for name in names for one in workspace.load(name, given)]
        for name in names:
            if not re.fullmatch(_SHELL_SAFE, name):
                message = f"recipe {escape.quoted(name)}: a workflow's shell would read more than a name"
                raise RecipeError(message, hint="allowed are ASCII letters, digits, and _ . / : * ? + -")
        pairs = dict.fromkeys((name, one.target.name) for name, one in loaded)
        print(json.dumps([{"recipe": recipe, "target": target} for recipe, target in pairs]))
        return 0
