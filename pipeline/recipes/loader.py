"""From a recipe's name to a checked recipe: find, parse, extend, override, validate; errors show the user's line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.documents.document import Document, dictionary_document, load_document
from pipeline.documents.overrides import (
    Override,
    OverridePathError,
    apply_overrides,
    check_single_model,
    parse_overrides,
)
from pipeline.documents.sources import Sources
from pipeline.errors import RecipeError, list_known
from pipeline.matrices.matrix import Matrix, expand, select
from pipeline.plugins.registry import Registry
from pipeline.project import RECIPES, Project, project_of
from pipeline.recipes.chain import Chain, chain_of
from pipeline.recipes.recipe import MODEL_SOURCES, Recipe, recipe_model
from pipeline.recipes.recipe_arguments import unknown_part_error
from pipeline.recipes.recipe_files import (
    check_name,
    default_name,
    find_parent,
    find_recipe,
    first_sentence,
    is_path,
    recipe_names,
    shown_path,
)
from pipeline.recipes.targets import load_targets
from pipeline.recipes.validation import validation_error
from pipeline.recipes.validation_cache import ValidationCache
from stages.base import StageError
from stages.messages import escape
from stages.messages.wording import did_you_mean
from stages.targets.memory_rules import with_stack
from stages.targets.spec import Target

# Below which of a recipe's keys a matrix may vary a parameter.
_PARAMETERS = tuple(name for name in Recipe.model_fields if name in ("model", "stages", "memory"))

_MOST_EXTENDED = 16  # recipes, one extending the other


class _MatrixEntry(BaseModel):
    model_config = ConfigDict(defer_build=True)

    matrix: Matrix


@dataclass(frozen=True)
class LoadedRecipe:
    """A checked recipe, its target, and where its values come from.

    A sub-recipe of a matrix has its `variant`, the name after the recipe's, and its `labels`: what its value on each
    axis is called; `whole` has the variants of the matrix as it is written, of which these may be a part. `path` is the
    recipe's file, None of one that is none.
    """

    recipe: Recipe
    target: Target
    sources: Sources
    chain: Chain
    variant: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    all_variants: tuple[str, ...] = ()
    path: Path | None = None

    @property
    def title(self) -> str:
        """The recipe's name; with its variant, as in `tiny_matrix:ds_cnn-cortex-m4`."""
        return f"{self.recipe.name}:{self.variant}" if self.variant else self.recipe.name


def load_recipe(
    source: str | Path | Mapping[str, Any],
    *,
    root: Path | Project,
    registry: Registry,
    variables: Mapping[str, str] | None = None,
    said: Sequence[Override] = (),
) -> LoadedRecipe:
    """As `load_recipes`, for what is one recipe: of a matrix, the name of a sub-recipe. Raises RecipeError."""
    found = load_recipes(source, root=root, registry=registry, variables=variables, said=said)
    if len(found) > 1:
        titles = [loaded.title for loaded in found]
        more = f", ... {titles[-1]}" if len(titles) > 4 else ""
        raise RecipeError(
            f"recipe '{found[0].recipe.name}' is a matrix of {len(found)}; one of them is needed here",
            hint=list_known("recipes", titles[: 4 if more else None]) + more,
        )
    return found[0]


def load_recipes(
    source: str | Path | Mapping[str, Any],
    *,
    root: Path | Project,
    registry: Registry,
    variables: Mapping[str, str] | None = None,
    said: Sequence[Override] = (),
) -> tuple[LoadedRecipe, ...]:
    """Load a recipe by name, by path or from a dictionary, with command-line overrides. Raises RecipeError.

    `variables` are `target`, `model` and `set` as in pipeline.documents.overrides. `said` are values that a dictionary
    has already, as the user gave them: mistakes in them are told in these words. Without a matrix it is one recipe;
    with one, `name:glob` selects sub-recipes.
    """
    written, wanted = source, ""
    if isinstance(source, str):
        written, _, wanted = source.partition(":")
    project = project_of(root)
    read = _read(written, project)
    given = parse_overrides(variables or {})
    data, changes = apply_overrides(read.data, [one for one in given if one.path[0] == "matrix"])
    given = [one for one in given if one.path[0] != "matrix"]
    matrix = data.pop("matrix", None)
    targets = load_targets(project)
    if matrix is None:
        if wanted:
            raise unknown_part_error(str(written), wanted, (), registry)
        check_single_model(given, project.root)
        return (_check(replace(read, data=data), given, registry, targets, said),)
    found = []
    changes = [*said, *changes]
    sources = Sources(read.documents, tuple(changes))
    matrix = _check_matrix(matrix, sources, registry)
    whole = tuple(one.name for one in expand(matrix, [], _PARAMETERS, sources.error)[0])
    combinations, given = select(matrix, given, str(data.get("target")), _PARAMETERS, sources.error)
    parts = ValidationCache()
    for combination in combinations:
        if not wanted or fnmatchcase(combination.name, wanted):
            values = [point.override for point in combination.points]
            loaded = _check(replace(read, data=data), [*values, *given], registry, targets, changes, parts)
            labels = {point.key: point.label for point in combination.points}
            found.append(replace(loaded, variant=combination.name, labels=labels, all_variants=whole))
    if not found:
        names = [combination.name for combination in combinations]
        raise unknown_part_error(str(written), wanted, names, registry)
    return tuple(found)


def paths_to_names(words: Sequence[str], root: Path | Project) -> list[str]:
    """Words of a command line with the names of recipes in place of the paths of their files. Raises RecipeError."""
    project = project_of(root)
    found = []
    for word in words:
        name, colon, rest = word.partition(":")
        if is_path(name) and "=" not in word and not word.startswith("-"):
            name = str(_read(name, project).data["name"])
        found.append(f"{name}{colon}{rest}")
    return found


@dataclass(frozen=True)
class Description:
    """What a list of recipes shows of one: (model, target), its first sentence; `error` when it cannot be read.

    Of a matrix model and target are '' where they are axes.
    """

    columns: tuple[str, str] = ("", "")
    purpose: str = ""
    matrix: bool = False
    error: str = ""


def describe_recipe(name: str, root: Path | Project) -> Description:
    """What a recipe says about itself, unchecked."""
    try:
        read = _read(name, project_of(root))
    except RecipeError as error:
        return Description(error=error.message.splitlines()[0])
    matrix = read.data.get("matrix")
    axes = matrix if isinstance(matrix, dict) else {}
    model = "" if "model" in axes else model_label(read.data.get("model"))
    target = "" if "target" in axes else str(read.data.get("target", ""))
    return Description((model, target), first_sentence(read.documents[0].text), matrix is not None)


def model_label(model: Any) -> str:
    """What a list shows of a recipe's `model`: the file without its folder, or the name; '' where there is none."""
    sources = [str(model[key]) for key in MODEL_SOURCES if model.get(key)] if isinstance(model, dict) else []
    return sources[0].partition("?")[0].rpartition("/")[2] if sources else ""


@dataclass(frozen=True)
class _Written:
    """A recipe as written: its documents, nearest first, their values merged, and its file if it is one."""

    documents: tuple[Document, ...]
    data: dict[str, Any]
    path: Path | None = None


def _read(source: str | Path | Mapping[str, Any], project: Project) -> _Written:
    if isinstance(source, Mapping):
        first, path, name = dictionary_document(source), project.root / RECIPES / "recipe", "recipe"
    else:
        path = find_recipe(str(source), project)
        first, name = load_document(path, shown_path(path, project)), default_name(path, project)
        check_name(first, path, project)
    documents = _chain(first, path, project)
    data = documents[-1].data
    for document in reversed(documents[:-1]):
        # A recipe's name is its own; with its parent's it would overwrite the parent's build folder.
        data = _extended({k: v for k, v in data.items() if k not in ("name", "abstract")}, document.data)
    return _Written(tuple(documents), {"name": name, **data}, None if isinstance(source, Mapping) else path)


def _check(
    read: _Written,
    given: list[Override],
    registry: Registry,
    targets: Mapping[str, Target],
    changes: Iterable[Override] = (),
    parts: ValidationCache | None = None,
) -> LoadedRecipe:
    """One recipe: overrides applied, validated. `changes` are overrides that the data has already.

    `parts` are those that it may have in common with the recipes before.
    """
    parts = parts or ValidationCache()
    try:
        data, overrides = apply_overrides(read.data, given)
    except OverridePathError as error:
        raise Sources(read.documents, tuple(changes)).override_error(error) from None
    sources = Sources(read.documents, (*changes, *overrides))
    chain = chain_of(data.get("stages"), registry, sources.error)
    try:
        recipe = recipe_model(registry).model_validate(parts.known(data, given))
    except ValidationError as error:
        from pipeline.recipes.json_schema import recipe_schema

        raise validation_error(error, data, sources, recipe_schema(registry), targets) from None
    parts.learn(recipe, given)
    if recipe.abstract and not any(override.path[:1] == ("model",) for override in given):
        message = f"recipe '{recipe.name}' is abstract: other recipes extend it"
        raise sources.error(message, ("abstract",), hint="run one of these, or give a model: model=path/to/x.tflite")
    if recipe.target not in targets:
        message = f"unknown target '{escape.name(recipe.target)}'{did_you_mean(recipe.target, targets)}"
        if "," in recipe.target:
            named = escape.name(recipe.target)
            message = f"'{named}' is several targets; for these a recipe needs a matrix with the axis target"
        raise sources.error(message, ("target",), hint=list_known("targets", targets))
    try:
        target = with_stack(targets[recipe.target], recipe.memory.stack)
    except StageError as error:
        raise sources.error(error.message, error.at) from None
    return LoadedRecipe(recipe, target, sources, chain, path=read.path)


def _check_matrix(matrix: Any, sources: Sources, registry: Registry) -> dict[str, Any]:
    """A matrix as it is written, when it has the form of one."""
    data: dict[str, Any] = {"matrix": matrix}
    try:
        _MatrixEntry.model_validate(data)
    except ValidationError as error:
        from pipeline.recipes.json_schema import recipe_schema

        raise validation_error(error, data, sources, recipe_schema(registry)) from None
    checked: dict[str, Any] = matrix
    return checked


def _chain(first: Document, path: Path, project: Project) -> list[Document]:
    """The recipe in the file `path` and everything it extends, nearest first."""
    documents, seen = [first], [first.name]
    while True:
        document = documents[-1]
        if not isinstance(document.data, dict):
            message = "a recipe is a mapping with schema, target, model, stages"
            raise document.error(message, ())
        parent = document.data.get("extends")
        if not isinstance(parent, str):
            # Absent, or of a wrong type that the recipe model reports.
            return documents
        found = find_parent(parent, path, project)
        if found is None:
            known = recipe_names(project, abstract=True)
            raise document.error(
                f"unknown recipe '{escape.name(parent)}'{did_you_mean(parent, known)}",
                ("extends",),
                hint=list_known("recipes", known),
            )
        if len(documents) > _MOST_EXTENDED:
            message = f"more than {_MOST_EXTENDED} recipes extend each other, {first.name} the first"
            raise document.error(message, ("extends",), hint="extend one of those before it")
        path, name = found, shown_path(found, project)
        if name in seen:
            circle = " -> ".join([*seen[seen.index(name) :], name])
            raise document.error(f"recipes extend each other in a circle: {circle}", ("extends",))
        seen.append(name)
        documents.append(load_document(path, name))


def _extended(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """The values of a recipe over those of the one that it extends.

    The options of a stage are not merged into those of another that is used in its place.
    """
    merged: dict[str, Any] = _merge(base, over)
    before, after = base.get("stages"), over.get("stages")
    if isinstance(before, dict) and isinstance(after, dict):
        for name, entry in after.items():
            given = before.get(name)
            used = given.get("use", name) if isinstance(given, dict) else name
            if isinstance(entry, dict) and entry.get("use", used) != used:
                place = {"after": given["after"]} if isinstance(given, dict) and "after" in given else {}
                merged["stages"] = {**merged["stages"], name: {**place, **entry}}
    return merged


def _merge(base: Any, over: Any) -> Any:
    """Mappings merge key by key; anything else, lists too, is replaced.

    So is a model entry that names another source: `{file: …}` over `{zoo: …}` means the file.
    """
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    sources = over.keys() & set(MODEL_SOURCES)
    if sources and sources != base.keys() & set(MODEL_SOURCES):
        return over
    return {**base, **{key: _merge(base[key], value) if key in base else value for key, value in over.items()}}
