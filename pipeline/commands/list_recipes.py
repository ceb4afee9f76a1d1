"""`doit list`: doit's command for recipes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from doit import doit_cmd
from doit.cmd_list import List as DoitList
from doit.cmdparse import CmdParseError

from pipeline.commands.command import JSON, CommandMixin, selected_names, variables
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.errors import PipelineError
from stages.base import StageError
from stages.support.messages import escape

_HELP = {
    "subtasks": "also list variants and stages",
    "quiet": "print names only",
    "sort": "order of the list [default: %(default)s]",
}


class List(CommandMixin, DoitList):  # type: ignore[misc]
    """`doit list`."""

    name = "list"
    group = "start"
    examples = (
        ("", "all recipes"),
        ("target=cortex-m4", "those that run on a Cortex-M4"),
        ("'kws*' --all", "with stages and variants"),
    )
    doc_purpose = "list recipes: model, target, purpose"
    doc_usage = "[NAME...] [target=… model=…] [--all] [-q] [--json]"
    doc_description = (
        "Lists all recipes, or those that are named or selected. --all adds the variants of a matrix and the stages "
        "of a recipe."
    )
    names = "recipes"
    variables = RECIPE_VARIABLES
    cmd_options = (*DoitList.cmd_options, JSON)
    offered_options = ("subtasks", "quiet", "sort", "json")

    def get_options(self) -> list[Any]:
        """Return the options with Firmline's help texts."""
        options = super().get_options()
        for option in options:
            option.help = _HELP.get(option.name, option.help)
        return options

    def execute(self, opt_values: Any, pos_args: list[str]) -> Any:
        """Print the list. Returns the exit code; an unknown name is an error."""
        from pipeline.commands.tasks import task_names
        from pipeline.plugins.registry import registry_of
        from pipeline.project import current_project
        from pipeline.recipes.recipe_arguments import matching_recipes

        pos_args = task_names(pos_args)
        values = variables()
        other = next((key for key in values if key not in ("target", "board", "model")), "")
        if values and not pos_args and "recipe" not in values:
            if other:
                raise CmdParseError(f"doit list: {other}= needs the name of a recipe")
            pos_args = _selected(values)
            if not pos_args:
                print("[]" if opt_values["json"] else f"no recipe with {' '.join(map('='.join, values.items()))}")
                return 0
            doit_cmd.reset_vars()
        named = [
            name
            for word in pos_args
            for name in (
                matching_recipes([word], current_project(), registry_of(current_project())) if "*" in word else [word]
            )
        ]
        if opt_values["json"]:
            print(json.dumps(_records(named, parts=opt_values["subtasks"]), indent=1))
            return 0
        return super().execute(opt_values, named)

    def _print_task(self, template: str, task: Any, *_: Any) -> None:
        self.outstream.write(f"{escape.line(template.format(name=task.name, doc=task.doc).rstrip())}\n")


def _selected(values: Mapping[str, str]) -> list[str]:
    """Return the recipes with a target of `target=a,b` and a model of `model=`.

    Raises PipelineError for an unknown target.
    """
    from pipeline.plugins.registry import registry_of
    from pipeline.project import current_project
    from pipeline.recipes.loader import describe_recipe, load_recipes, model_label
    from pipeline.recipes.recipe_files import recipe_names
    from pipeline.recipes.targets import load_targets, unknown_target_error

    project, known = current_project(), load_targets(current_project())
    targets = selected_names((), values, "target", "board")
    models = [name.removeprefix("zoo:").rpartition("/")[2] for name in selected_names((), values, "model")]
    for target in targets:
        if target not in known:
            raise CmdParseError(str(unknown_target_error(target, known)))
    names = []
    for name in recipe_names(project, nested=True):
        summary = describe_recipe(name, project)
        pairs = [summary.columns]
        if summary.matrix:
            try:
                members = load_recipes(name, root=project, registry=registry_of(project))
            except (PipelineError, StageError):
                continue
            labels = [model_label(member.recipe.model.model_dump(mode="json")) for member in members]
            pairs = [(label, member.target.name) for label, member in zip(labels, members, strict=True)]
        if any((not targets or target in targets) and (not models or model in models) for model, target in pairs):
            names.append(name)
    return names


def _records(named: Sequence[str], *, parts: bool) -> list[dict[str, Any]]:
    """Return the JSON records of the named recipes. `error` is '' for a valid recipe.

    `model` or `target` is '' if it is an axis of a matrix. `parts` adds the variants of each matrix after it.
    """
    from pipeline.project import current_project
    from pipeline.recipes.loader import describe_recipe
    from pipeline.recipes.recipe_files import is_built_in, recipe_names

    records = []
    for name in recipe_names(current_project(), nested=True):
        if not named or name in named:
            summary = describe_recipe(name, current_project())
            model, target = summary.columns or ("", "")
            head = {
                "name": name,
                "model": model,
                "target": target,
                "purpose": summary.purpose,
                "matrix": summary.matrix,
            }
            records.append({**head, "built_in": is_built_in(name, current_project()), "error": summary.error})
            if parts and summary.matrix:
                records += _parts(records[-1])
    return records


def _parts(matrix: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records of a matrix's variants.

    For an invalid matrix, sets `error` in its record.
    """
    from pipeline.plugins.registry import registry_of
    from pipeline.project import current_project
    from pipeline.recipes.loader import load_recipes, model_label

    try:
        members = load_recipes(matrix["name"], root=current_project(), registry=registry_of(current_project()))
    except (PipelineError, StageError) as error:  # StageError: from a plug-in
        matrix["error"] = str(error).splitlines()[0]
        return []
    records = []
    for member in members:
        model = model_label(member.recipe.model.model_dump(mode="json"))
        fields = {"name": member.title, "model": model, "target": member.target.name, "matrix": False}
        records.append({**matrix, **fields})
    return records
