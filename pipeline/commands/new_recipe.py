"""`doit new recipe NAME`: write a recipe for a model file, a zoo model or an operator."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pipeline.commands.command import JSON, Command, variables
from pipeline.commands.new_project import base_recipe, known_targets, not_a_file, place_of_model, write_files
from pipeline.documents.document import DICTIONARY, parse_value
from pipeline.documents.overrides import Override, apply_overrides, check_assignments, parse_overrides
from pipeline.errors import PipelineError, RecipeError, list_known
from pipeline.plugins.registry import registry_of
from pipeline.project import RECIPES, Project, current_project
from pipeline.recipes.json_schema import schema_file
from pipeline.recipes.loader import LoadedRecipe, load_recipes
from pipeline.recipes.recipe_files import find_parent, recipe_names
from pipeline.recipes.targets import load_targets
from stages.base import StageError
from stages.ir.models.sources import ModelSource
from stages.ir.models.spec import OpModel
from stages.ir.models.tflite_reader import read
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean
from stages.support.options.names import RECIPE_PATTERN, invalid_name
from stages.support.system.pathname import located, variable_hint

_LAYER, _EXTENDS = "layer", "extends"
VARIABLES = ("model", "target", "board", "set")
_RECIPE = "recipe"
_TARGET = "rv64-rvp"  # without target= and extends=


class New(Command):
    """`doit new recipe NAME`."""

    name = "new"
    group = "start"
    examples = (
        ("recipe my_kws model=zoo:ds_cnn target=cortex-m4", "for a built-in model"),
        ("recipe my_net model=net.tflite", "for a file"),
        ("recipe act layer='{op: relu, shape: [6]}'", "for a single layer"),
    )
    names_shown = "recipe NAME"
    comma_lists = False
    names = "what to make, and its name"
    cmd_options = (JSON,)
    variables = VARIABLES
    own_variables = (_LAYER, _EXTENDS)
    doc_purpose = "write a recipe for a model or a single layer"
    keys_help = (
        ("NAME", "the file is recipes/NAME.yaml"),
        ("model", "a .tflite or .onnx file, or zoo:NAME; a file outside of the project is copied to models/"),
        ("target", "core or board (`doit targets`); several become a matrix; default that of extends=, or rv64-rvp"),
        ("layer", "a single layer, as model: {op: …} of a recipe; `doit operators NAME` lists its options"),
        ("extends", "base recipe instead of the target's default, or none"),
    )
    doc_usage = "recipe NAME model=FILE | model=zoo:NAME | layer='{op: …}' [target=…] [extends=…] [set=…] [--json]"
    doc_description = "The recipe runs without edits. Never overwrites a file."

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        usage = "`doit new recipe NAME model=FILE`, or layer='{op: …}'"
        if named and named[0] != _RECIPE:
            guess = did_you_mean(named[0], [_RECIPE])
            raise PipelineError(f"'{escape.name(named[0])}' cannot be created{guess}", hint=usage)
        if len(named) != 2:
            extra = f"unexpected '{escape.name(named[2])}'" if len(named) > 2 else "the recipe needs a name"
            raise PipelineError(f"doit new: {extra}", hint=usage)
        path, *copied = new_recipe(named[1], current_project(), **variables(), **self.own_values)
        if options["json"]:
            print(json.dumps({"recipe": named[1], "file": path, **({"model": copied[0]} if copied else {})}))
        else:
            print("\n".join([*map(escape.line, (path, *copied)), f"next: doit run {named[1]}"]))
        return 0


def new_recipe(
    name: str,
    project: Project,
    *,
    model: str = "",
    layer: str = "",
    target: str = "",
    board: str = "",
    extends: str = "",
    **more: str,
) -> list[str]:
    """Write a recipe. Returns its file, relative to the project, and that of a copied model.

    A model outside of the project is copied to models/. Several targets, separated by commas, become a matrix. `more`
    may have `set`. The default target is the target of the recipe that it `extends`, or rv64-rvp. Raises PipelineError.
    """
    target = target or board
    if wrong := invalid_name(name, RECIPE_PATTERN):
        raise PipelineError(wrong)
    path = project.root / RECIPES / f"{name}.yaml"
    shown = project.display_path(path)
    if path.exists() or path.is_symlink():
        raise PipelineError(f"{escape.name(shown)} already exists", hint="nothing was written")
    data = _recipe(project, name, path, model=model, layer=layer, target=target, extends=extends)
    overrides = parse_overrides(more)
    data, overrides = apply_overrides(data, overrides)
    arguments = {"target": target, "extends": extends, _LAYER if layer else "model": layer or model}
    typed = [
        Override(f"{key}={text}", ("model" if key == _LAYER else key,), None) for key, text in arguments.items() if text
    ]
    loaded = _check(data, project, [*typed, *overrides], shown)
    copied = {} if layer else _own_model(data, project)
    entry = data["model"]
    title = f"A {entry['op']} by itself" if layer else Path(*map(str, entry.values())).name
    text = _head(project, path, f"{title} on {', '.join(member.target.name for member in loaded)}.")
    text += yaml.safe_dump(data, sort_keys=False, default_flow_style=None, allow_unicode=True, width=120)
    files = {**copied, f"{RECIPES}/{name}.yaml": text.encode()}
    write_files(project.root, files, f"{escape.name(shown)} cannot be written")
    return [*files][::-1]


def _recipe(
    project: Project, name: str, path: Path, *, model: str, layer: str, target: str, extends: str
) -> dict[str, Any]:
    """Return the recipe's content. Raises PipelineError."""
    if bool(model) == bool(layer):
        raise RecipeError(
            "either model= or layer= is required", hint="model=net.tflite, model=zoo:ds_cnn, layer='{op: conv2d, …}'"
        )
    targets = load_targets(project)
    named = known_targets(target, targets)
    parent = extends if extends != "none" else ""
    if parent and find_parent(parent, path, project) is None:
        known = recipe_names(project, abstract=True)
        message = f"extends={escape.name(parent)}: unknown recipe '{escape.name(parent)}'{did_you_mean(parent, known)}"
        raise RecipeError(message, hint=list_known("recipes", known))
    base = parent if extends else base_recipe(named[0] if named else targets[_TARGET])
    target_name = named[0].name if named else "" if parent else _TARGET
    matrix = {"matrix": {"target": [other.name for other in named]}} if len(named) > 1 else {}
    return {
        "schema": 1,
        "name": name,
        **({"extends": base} if base else {}),
        **({"target": target_name} if target_name else {}),
        "model": _layer(layer) if layer else model_entry(model, project),
        **matrix,
    }


def _layer(text: str) -> Mapping[str, Any]:
    """Parse `layer=`. Raises RecipeError."""
    try:
        layer = parse_value(text)
    except ValueError as error:
        raise RecipeError(f"layer={escape.name(text)}: {error}") from None
    if not isinstance(layer, dict) or "op" not in layer:
        hint = "such as layer='{op: conv2d, shape: [14, 14, 64], out_channels: 64, kernel: [3, 3]}'"
        raise RecipeError(f"layer={escape.name(text)}: expected a mapping with op", hint=hint)
    return layer


def model_entry(text: str, project: Project) -> Mapping[str, Any]:
    """Parse `model=`. Raises RecipeError for a missing file or a folder."""
    check_assignments([("model", text)])
    (override,) = parse_overrides({"model": text})
    entry: dict[str, Any] = override.value
    if "file" in entry and not (path := located(entry["file"], project.root)).is_file():
        raise not_a_file(text, path)
    return entry


def _own_model(data: dict[str, Any], project: Project) -> dict[str, bytes]:
    """Make the model's path relative to the project.

    Returns the file to copy into it, by place, if it lies outside.

    A path with a variable stays as it is. Raises PipelineError.
    """
    file = data["model"].get("file", "")
    if not file or variable_hint(file):
        return {}
    path = Path(os.path.normpath(located(file, project.root)))
    place = place_of_model(path, project.root)
    data["model"] = {**data["model"], "file": place}
    if path.is_relative_to(project.root):
        return {}
    try:
        content, copy = path.read_bytes(), project.root / place
        if not copy.exists():
            return {place: content}
        if copy.read_bytes() == content:
            return {}
    except OSError as error:
        raise PipelineError(f"model={escape.name(file, 200)}: cannot be copied: {error.strerror}") from None
    raise PipelineError(
        f"{escape.name(place, 200)} already exists and differs from {escape.name(file, 200)}",
        hint="nothing was written; rename one of them",
    )


def _head(project: Project, path: Path, title: str) -> str:
    """Return the comment lines at the top: an editor's schema, and the purpose for `doit list`."""
    lines, schema = [escape.line(title)], schema_file(project)
    if schema.is_file():
        lines.insert(0, f"yaml-language-server: $schema={Path(os.path.relpath(schema, path.parent)).as_posix()}")
    return "".join(f"# {line}\n" for line in lines)


def _check(data: Mapping[str, Any], project: Project, typed: Sequence[Override], shown: str) -> Sequence[LoadedRecipe]:
    """Load the recipe, or the variants of its matrix, as a run does.

    Raises PipelineError that names command line arguments.
    """
    try:
        members = load_recipes(data, root=project, registry=registry_of(project), applied=typed)
    except RecipeError as error:
        if error.line or not error.file.startswith(DICTIONARY):
            raise
        message = error.message.removeprefix(f"{error.file}: ")
        raise PipelineError(f"{escape.name(shown)}: {message}", hint=error.hint) from None
    try:
        check_model(members[0].recipe.model, project)
    except StageError as error:
        first, *rest = error.message.splitlines()
        raise members[0].sources.error(first, ("model",), hint="\n".join([*rest, *error.hint.splitlines()])) from None
    return members


def check_model(model: ModelSource, project: Project) -> None:
    """Raise StageError for a damaged model file, or a layer that import refuses."""
    if not isinstance(model, OpModel):
        from stages.import_model.stage import known_model

        known_model(model, project.root)
        return
    from stages.import_model.checks import check_operator
    from stages.ir.models.resolve import resolve

    info = read(resolve(model))
    for operator in info.operators:
        check_operator(operator, info)
