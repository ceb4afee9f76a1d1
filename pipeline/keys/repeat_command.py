"""The command that repeats a run."""

from __future__ import annotations

import shlex

from pipeline.project import Project
from pipeline.recipes.loader import LoadedRecipe
from pipeline.recipes.recipe_files import default_name, shown_path

_SET = "set="


def repeat_command(loaded: LoadedRecipe, project: Project) -> str:
    """Return the line that runs the recipe again with the same target, model and values, quoted for a shell.

    The executor is left out: it does not change the result. A recipe that is a dictionary has no name that a command
    line could give, so it is a line of Python.
    """
    typed = dict.fromkeys(one.text for one in loaded.sources.overrides if not one.matrix_path)
    values = {text.partition("=")[0]: text.partition("=")[2] for text in typed if not text.startswith(_SET)}
    if not loaded.variant and "board" not in values:
        values.setdefault("target", loaded.target.name)
    assigned = [text.removeprefix(_SET) for text in typed if text.startswith(_SET)]
    if assigned:
        values["set"] = ",".join(assigned)
    variant = f":{loaded.variant}" if loaded.variant else ""
    if loaded.path is None:
        return f"run_recipe(recipe, {values})  # recipe: the dictionary that was run"
    named = any(loaded.path.is_relative_to(folder) for folder in project.recipes)
    name = default_name(loaded.path, project) if named else shown_path(loaded.path, project)
    return shlex.join(["doit", "run", f"{name}{variant}", *(f"{key}={value}" for key, value in values.items())])
