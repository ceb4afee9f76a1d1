"""Loading of recipes: find, parse, extend, override, validate. Errors show the user's line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.documents.chains import NETWORK_SOURCES, with_network
from pipeline.documents.document import Document, dictionary_document, load_document
from pipeline.documents.overrides import (
    Override,
    OverridePathError,
    apply_overrides,
    check_single_model,
    each_target,
    parse_overrides,
)
from pipeline.documents.sources import Sources
from pipeline.errors import RecipeError, list_known
from pipeline.matrices.matrix import Matrix, expand, select
from pipeline.plugins.registry import Registry
from pipeline.project import RECIPES, Project, project_of
from pipeline.recipes.model_entry import MODEL_SOURCES
from pipeline.recipes.recipe import Recipe, recipe_model
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
from pipeline.recipes.stage_sequence import StageSequence, stage_sequence
from pipeline.recipes.targets import declared_targets
from pipeline.recipes.validation import validation_error
from pipeline.recipes.validation_cache import ValidationCache
from stages.backends.targets.memory_rules import with_stack
from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean

# Keys below which a matrix may vary a value.
_PARAMETERS = tuple(name for name in Recipe.model_fields if name in ("model", "stages", "memory"))

_MAX_EXTENDS = 16


class _MatrixEntry(BaseModel):
    model_config = ConfigDict(defer_build=True)

    matrix: Matrix


@dataclass(frozen=True)
class LoadedRecipe:
    """A validated recipe with its target and the origins of its values.

    variant: name of the variant of a matrix, else ''.
    labels: label of the variant's value on each axis.
    all_variants: all variants of the matrix, even if only some are loaded.
    path: the recipe file; None for a dictionary.
    """

    recipe: Recipe
    target: Target
    sources: Sources
    sequence: StageSequence
    variant: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    all_variants: tuple[str, ...] = ()
    path: Path | None = None

    @property
    def title(self) -> str:
        """The recipe's name, with its variant: `tiny_matrix:ds_cnn-cortex-m4`."""
        return f"{self.recipe.name}:{self.variant}" if self.variant else self.recipe.name


def load_recipe(
    source: str | Path | Mapping[str, Any],
    *,
    root: Path | Project,
    registry: Registry,
    variables: Mapping[str, str] | None = None,
    applied: Sequence[Override] = (),
) -> LoadedRecipe:
    """As `load_recipes`, for exactly one recipe or variant. Raises RecipeError."""
    recipes = load_recipes(source, root=root, registry=registry, variables=variables, applied=applied)
    if len(recipes) > 1 and not recipes[0].variant:
        names = ", ".join(escape.name(loaded.target.name) for loaded in recipes)
        raise RecipeError(f"one target is needed, got {len(recipes)}: {names}")
    if len(recipes) > 1:
        titles = [loaded.title for loaded in recipes]
        more = f", ... {titles[-1]}" if len(titles) > 4 else ""
        raise RecipeError(
            f"recipe '{recipes[0].recipe.name}' is a matrix of {len(recipes)} variants; name one of them",
            hint=list_known("variants", titles[: 4 if more else None]) + more,
        )
    return recipes[0]


def load_recipes(
    source: str | Path | Mapping[str, Any],
    *,
    root: Path | Project,
    registry: Registry,
    variables: Mapping[str, str] | None = None,
    applied: Sequence[Override] = (),
) -> tuple[LoadedRecipe, ...]:
    """Load a recipe, or the variants of a matrix, with command-line overrides.

    A recipe without a matrix is loaded once for each target of `target=a,b`.

    source: name, path or dictionary; `name:glob` selects variants.
    variables: overrides by name, as in pipeline.documents.overrides.
    applied: overrides that a dictionary contains already; errors in their values quote them.

    Raises RecipeError.
    """
    name_or_data, selection = source, ""
    if isinstance(source, str):
        name_or_data, _, selection = source.partition(":")
    project = project_of(root)
    read = _read(name_or_data, project)
    overrides = parse_overrides(variables or {})
    data, matrix_overrides = apply_overrides(
        read.data, [override for override in overrides if override.path[0] == "matrix"]
    )
    overrides = _without_matrix(overrides)
    matrix = data.pop("matrix", None)
    targets, declarations = declared_targets(project)
    read = replace(read, targets=declarations)
    if matrix is None:
        if selection:
            raise unknown_part_error(str(name_or_data), selection, (), registry)
        check_single_model(overrides, project.root)
        read = replace(read, data=data)
        of_targets = [parse_overrides(values) for values in each_target(variables or {})]
        return tuple(_check(read, _without_matrix(items), registry, targets, applied) for items in of_targets)
    recipes = []
    matrix_overrides = [*applied, *matrix_overrides]
    sources = Sources(read.documents, tuple(matrix_overrides))
    matrix = _check_matrix(matrix, sources, registry)
    all_variants = tuple(combination.name for combination in expand(matrix, [], _PARAMETERS, sources.error)[0])
    combinations, overrides = select(matrix, overrides, str(data.get("target")), _PARAMETERS, sources.error)
    cache = ValidationCache()
    for combination in combinations:
        if not selection or fnmatchcase(combination.name, selection):
            values = [point.override for point in combination.points]
            loaded = _check(replace(read, data=data), [*values, *overrides], registry, targets, matrix_overrides, cache)
            labels = {point.key: point.label for point in combination.points}
            recipes.append(replace(loaded, variant=combination.name, labels=labels, all_variants=all_variants))
    if not recipes:
        names = [combination.name for combination in combinations]
        raise unknown_part_error(str(name_or_data), selection, names, registry)
    return tuple(recipes)


def _without_matrix(overrides: Iterable[Override]) -> list[Override]:
    return [override for override in overrides if override.path[0] != "matrix"]


def paths_to_names(words: Sequence[str], root: Path | Project) -> list[str]:
    """Replace paths of recipe files in command-line words by recipe names. Raises RecipeError."""
    project = project_of(root)
    names = []
    for word in words:
        name, colon, rest = word.partition(":")
        if is_path(name) and "=" not in word and not word.startswith("-"):
            name = str(_read(name, project).data["name"])
        names.append(f"{name}{colon}{rest}")
    return names


@dataclass(frozen=True)
class Description:
    """Entry of a recipe in a list.

    columns: model and target; '' for an axis of a matrix.
    purpose: first sentence of the file.
    error: reason why the file cannot be read, or ''.
    """

    columns: tuple[str, str] = ("", "")
    purpose: str = ""
    matrix: bool = False
    error: str = ""


def describe_recipe(name: str, root: Path | Project) -> Description:
    """Return the list entry of a recipe, without validation."""
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
    """Return the file name or the name of a recipe's model, or ''."""
    if isinstance(model, dict) and isinstance(model.get("chain"), list):
        return next(filter(None, map(model_label, model["chain"])), "")
    sources = [str(model[key]) for key in MODEL_SOURCES if model.get(key)] if isinstance(model, dict) else []
    return sources[0].partition("?")[0].rpartition("/")[2] if sources else ""


@dataclass(frozen=True)
class _ParsedRecipe:
    """A parsed recipe: its documents, nearest first, the merged values, and the file if any.

    targets: the documents that declare targets.
    """

    documents: tuple[Document, ...]
    data: dict[str, Any]
    path: Path | None = None
    targets: tuple[Document, ...] = ()


def _read(source: str | Path | Mapping[str, Any], project: Project) -> _ParsedRecipe:
    if isinstance(source, Mapping):
        first, path, name = dictionary_document(source), project.root / RECIPES / "recipe", "recipe"
    else:
        path = find_recipe(str(source), project)
        first, name = load_document(path, shown_path(path, project)), default_name(path, project)
        check_name(first, path, project)
    documents = _extended_documents(first, path, project)
    data = documents[-1].data
    for document in reversed(documents[:-1]):
        # Names are not inherited, since each recipe has a build folder.
        data = _merge_recipe({k: v for k, v in data.items() if k not in ("name", "abstract")}, document.data)
    return _ParsedRecipe(tuple(documents), {"name": name, **data}, None if isinstance(source, Mapping) else path)


def _check(
    read: _ParsedRecipe,
    overrides: list[Override],
    registry: Registry,
    targets: Mapping[str, Target],
    applied: Iterable[Override] = (),
    cache: ValidationCache | None = None,
) -> LoadedRecipe:
    """Apply overrides to a recipe and validate it. Raises RecipeError.

    applied: overrides that the data contains already.
    cache: validated sections of other variants.
    """
    cache = cache or ValidationCache()
    try:
        data, placed = apply_overrides(read.data, overrides)
    except OverridePathError as error:
        raise Sources(read.documents, tuple(applied)).override_error(error) from None
    sources = Sources(read.documents, (*applied, *placed), read.targets)
    sequence = stage_sequence(data.get("stages"), registry, sources.error)
    try:
        recipe = recipe_model(registry).model_validate(cache.reuse(data, overrides))
    except ValidationError as error:
        from pipeline.recipes.json_schema import recipe_schema

        raise validation_error(error, data, sources, recipe_schema(registry), targets) from None
    cache.store(recipe, overrides)
    if recipe.abstract and not any(override.path[:1] == ("model",) for override in overrides):
        message = f"recipe '{recipe.name}' is abstract: other recipes extend it"
        raise sources.error(
            message, ("abstract",), hint="run a recipe that extends it, or give a model: model=path/to/x.tflite"
        )
    if recipe.target not in targets:
        message = f"unknown target '{escape.name(recipe.target)}'{did_you_mean(recipe.target, targets)}"
        if "," in recipe.target:
            named = escape.name(recipe.target)
            message = f"'{named}' names several targets; this needs a matrix with the axis target"
        raise sources.error(message, ("target",), hint=list_known("targets", targets))
    try:
        target = with_stack(targets[recipe.target], recipe.memory.stack)
    except StageError as error:
        raise sources.error(error.message, error.at) from None
    return LoadedRecipe(recipe, target, sources, sequence, path=read.path)


def _check_matrix(matrix: Any, sources: Sources, registry: Registry) -> dict[str, Any]:
    """Return a matrix as written if it is valid. Raises RecipeError."""
    data: dict[str, Any] = {"matrix": matrix}
    try:
        _MatrixEntry.model_validate(data)
    except ValidationError as error:
        from pipeline.recipes.json_schema import recipe_schema

        raise validation_error(error, data, sources, recipe_schema(registry)) from None
    checked: dict[str, Any] = matrix
    return checked


def _extended_documents(first: Document, path: Path, project: Project) -> list[Document]:
    """Return a recipe and all that it extends, nearest first. Raises RecipeError."""
    documents, seen = [first], [first.name]
    while True:
        document = documents[-1]
        if not isinstance(document.data, dict):
            message = "a recipe is a mapping with schema, target, model, stages"
            raise document.error(message, ())
        parent = document.data.get("extends")
        if not isinstance(parent, str):
            # A wrong type is reported by validation.
            return documents
        parent_path = find_parent(parent, path, project)
        if parent_path is None:
            known = recipe_names(project, abstract=True)
            raise document.error(
                f"unknown recipe '{escape.name(parent)}'{did_you_mean(parent, known)}",
                ("extends",),
                hint=list_known("recipes", known),
            )
        if len(documents) > _MAX_EXTENDS:
            message = f"more than {_MAX_EXTENDS} levels of extends, starting at {first.name}"
            raise document.error(message, ("extends",), hint="extend a recipe nearer to the base")
        path, name = parent_path, shown_path(parent_path, project)
        if name in seen:
            cycle = " -> ".join([*seen[seen.index(name) :], name])
            raise document.error(f"extends forms a cycle: {cycle}", ("extends",))
        seen.append(name)
        documents.append(load_document(path, name))


def _merge_recipe(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Merge the values of a recipe over those of the recipe that it extends.

    Options of a stage are not merged with options of a stage that replaces it.
    """
    merged: dict[str, Any] = _merge(base, over)
    before, after = base.get("stages"), over.get("stages")
    if isinstance(before, dict) and isinstance(after, dict):
        for name, entry in after.items():
            base_entry = before.get(name)
            used = base_entry.get("use", name) if isinstance(base_entry, dict) else name
            if isinstance(entry, dict) and entry.get("use", used) != used:
                placement = (
                    {"after": base_entry["after"]} if isinstance(base_entry, dict) and "after" in base_entry else {}
                )
                merged["stages"] = {**merged["stages"], name: {**placement, **entry}}
    return merged


def _merge(base: Any, over: Any) -> Any:
    """Merge mappings key by key; other values, including lists, replace the base.

    A model entry with another source replaces the base: `{file: …}` over `{zoo: …}` means the file. Over a chain with
    one network, it replaces that network.
    """
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    sources = over.keys() & set(MODEL_SOURCES)
    if sources & set(NETWORK_SOURCES) and "chain" in base:
        return with_network(base, over)
    if sources and sources != base.keys() & set(MODEL_SOURCES):
        return over
    return {**base, **{key: _merge(base[key], value) if key in base else value for key, value in over.items()}}
