"""The command that repeats a run."""

from __future__ import annotations

import shlex

from pipeline.project import Project
from pipeline.recipes.loader import LoadedRecipe
from pipeline.recipes.recipe_files import default_name, shown_path

_SET = "set="


def repeat_command(loaded: LoadedRecipe, project: Project) -> str:
    """Return the command that repeats a run with the same target, model and overrides, quoted.

    The executor is omitted, since it does not change the result. For a dictionary it is a call of run_recipe.
    """
    typed = dict.fromkeys(override.text for override in loaded.sources.overrides if not override.matrix_path)
    values = {text.partition("=")[0]: text.partition("=")[2] for text in typed if not text.startswith(_SET)}
    if not loaded.variant and "board" not in values:
        values.setdefault("target", loaded.target.name)
    assigned = [text.removeprefix(_SET) for text in typed if text.startswith(_SET)]
    if assigned:
        values["set"] = ",".join(assigned)
    variant = f":{loaded.variant}" if loaded.variant else ""
    if loaded.path is None:
        return f"run_recipe(recipe, {values})  # recipe: the dictionary of the run"
    has_name = any(loaded.path.is_relative_to(folder) for folder in project.recipes)
    name = default_name(loaded.path, project) if has_name else shown_path(loaded.path, project)
    return shlex.join(["doit", "run", f"{name}{variant}", *(f"{key}={value}" for key, value in values.items())])
