"""The command that repeats a run."""

import shlex
from collections.abc import Sequence

from pipeline.documents.overrides import parse_overrides
from pipeline.project import Project
from pipeline.recipes.loader import LoadedRecipe
from pipeline.recipes.recipe_files import default_name, shown_path
from stages.report.advice.facts import RECIPE

_SET = "set="


def repeat_command(
    loaded: LoadedRecipe, project: Project, verb: str = "run", assigned: str = "", arguments: Sequence[str] = ()
) -> str:
    """Return the command that repeats a run with the same target, model and overrides, quoted.

    The executor is omitted, since it does not change the result. For a dictionary it is a call of run_recipe, and ''
    for another `verb` than run. `assigned` is one more `set=`, instead of the run's own values of the same path;
    `arguments` are more arguments.
    """
    path = parse_overrides({"set": assigned})[0].path if assigned else None
    typed = dict.fromkeys(
        override.text
        for override in loaded.sources.overrides
        if not override.matrix_path and (path is None or override.requested_path[: len(path)] != path)
    )
    values = {text.partition("=")[0]: text.partition("=")[2] for text in typed if not text.startswith(_SET)}
    if not loaded.variant and "board" not in values:
        values.setdefault("target", loaded.target.name)
    assignments = [text.removeprefix(_SET) for text in typed if text.startswith(_SET)]
    assignments += [assigned] if assigned else []
    if assignments:
        values["set"] = ",".join(assignments)
    variant = f":{loaded.variant}" if loaded.variant else ""
    if loaded.path is None:
        return "" if verb != "run" else f"run_recipe(recipe, {values})  # recipe: the dictionary of the run"
    has_name = any(loaded.path.is_relative_to(folder) for folder in project.recipes)
    name = default_name(loaded.path, project) if has_name else shown_path(loaded.path, project)
    settings = (f"{key}={value}" for key, value in values.items())
    return shlex.join(["doit", verb, f"{name}{variant}", *settings, *arguments])


def completed_command(command: str, loaded: LoadedRecipe, project: Project) -> str:
    """Return a command of the advice with this run's recipe and overrides.

    They replace its placeholder. '' for a recipe that no command can name.
    """
    _, verb, *arguments = shlex.split(command)
    if RECIPE not in arguments:
        return command
    arguments.remove(RECIPE)
    assigned = next((text.removeprefix(_SET) for text in arguments if text.startswith(_SET)), "")
    rest = [text for text in arguments if not text.startswith(_SET)]
    return repeat_command(loaded, project, verb, assigned, rest)
