"""From a recipe's name to a checked recipe: find, parse, extend, override, validate; errors show the user's line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pipeline.document import Document, YamlPath, document_of, load_document
from pipeline.errors import RecipeError, did_you_mean, list_known
from pipeline.matrix import Matrix, expand, select
from pipeline.naming import no_such_part
from pipeline.overrides import Override, apply_overrides, parse_overrides
from pipeline.recipe import MODEL_SOURCES, RECIPE_NAME, Project, Recipe, recipe_model
from pipeline.recipe_files import (
    check_name,
    default_name,
    find_parent,
    find_recipe,
    first_sentence,
    recipe_names,
    shown_path,
)
from pipeline.registry import Registry
from stages.targets.spec import Target

PROJECT_FILE = "pipeline.yaml"
# What the patterns of recipe keys mean, for those who do not read regular expressions.
_PATTERNS = {
    r"^[0-9a-f]{64}$": "64 hexadecimal digits (0-9, a-f)",
    RECIPE_NAME: "letters, digits, and _ . + - after the first; a / between folder and file",
}
# Below which of a recipe's keys a matrix may vary a parameter.
_PARAMETERS = tuple(name for name in Recipe.model_fields if name in ("model", "stages", "memory"))


class _MatrixEntry(BaseModel):
    matrix: Matrix


@dataclass(frozen=True)
class Sources:
    """Where each value of a recipe was written.

    `documents` has the recipe first, then what it extends, nearest first; an override beats them all.
    """

    documents: tuple[Document, ...]
    overrides: tuple[Override, ...] = ()

    def error(self, message: str, path: YamlPath, *, key: bool = False, hint: str = "") -> RecipeError:
        """A RecipeError at the value (or the key) at `path`: its override, or its file, line and column."""
        for override in reversed(self.overrides):
            if path[: len(override.path)] == override.path:
                if override.place:
                    return self._in_matrix(override, message, path, key, hint)
                return RecipeError(f"{override.text}: {message}", hint=hint)
        # The value is the file's, but an override changed something in it.
        changed = [override.text for override in self.overrides if path and override.path[: len(path)] == path]
        hint = "\n".join(line for line in (hint, f"together with {', '.join(changed)}" if changed else "") if line)
        for length in range(len(path), -1, -1):
            for document in self.documents:
                if _contains(document.data, path[:length]):
                    position = document.locate(path[:length], key=key and length == len(path))
                    return document.error(message, position, hint=hint)
        return RecipeError(message, hint=hint)

    def _in_matrix(self, override: Override, message: str, path: YamlPath, key: bool, hint: str) -> RecipeError:
        """An error in a value of the matrix, or in the dotted path of its axis."""
        given = Sources(self.documents, tuple(one for one in self.overrides if not one.place))
        if path[: len(override.whole)] == override.whole:
            return given.error(message, override.place + path[len(override.whole) :], key=key, hint=hint)
        included = override.place[1] == "include"
        return given.error(message, override.place if included else override.place[:2], key=True, hint=hint)


@dataclass(frozen=True)
class LoadedRecipe:
    """A checked recipe, its target, and where its values come from.

    A sub-recipe of a matrix has its `variant`, the name after the recipe's, and its `labels`: what its value on each
    axis is called; `whole` has the variants of the matrix as it is written, of which these may be a part.
    """

    recipe: Recipe
    target: Target
    sources: Sources
    variant: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    whole: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The recipe's name; with its variant, as in `tiny_matrix:ds_cnn-cortex-m4`."""
        return f"{self.recipe.name}:{self.variant}" if self.variant else self.recipe.name


def load_targets(root: Path) -> dict[str, Target]:
    """The targets of pipeline.yaml by name. Raises RecipeError."""
    document = load_document(root / PROJECT_FILE, PROJECT_FILE)
    data = document.data
    if isinstance(data, dict) and isinstance(data.get("targets"), dict):
        targets = {
            name: {"name": name, **entry} if isinstance(entry, dict) else entry
            for name, entry in data["targets"].items()
        }
        data = {**data, "targets": targets}
    try:
        return dict(Project.model_validate(data).targets)
    except ValidationError as error:
        schema = Project.model_json_schema()
        raise _first_error(error, data, Sources((document,)), {**schema, "definitions": schema["$defs"]}) from None


def load_recipe(
    source: str | Path | Mapping[str, Any],
    *,
    root: Path,
    registry: Registry,
    variables: Mapping[str, str] | None = None,
) -> LoadedRecipe:
    """As `load_recipes`, for what is one recipe: of a matrix, the name of a sub-recipe. Raises RecipeError."""
    found = load_recipes(source, root=root, registry=registry, variables=variables)
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
    root: Path,
    registry: Registry,
    variables: Mapping[str, str] | None = None,
) -> tuple[LoadedRecipe, ...]:
    """Load a recipe by name, by path or from a dictionary, with command-line overrides. Raises RecipeError.

    `variables` are `target`, `model` and `set` as in pipeline.overrides. Without a matrix it is one recipe; with one,
    `name:glob` selects sub-recipes.
    """
    written, wanted = source, ""
    if isinstance(source, str):
        written, _, wanted = source.partition(":")
    read = _read(written, root)
    given = parse_overrides(variables or {})
    data, changes = apply_overrides(read.data, [one for one in given if one.path[0] == "matrix"])
    given = [one for one in given if one.path[0] != "matrix"]
    matrix = data.pop("matrix", None)
    targets = load_targets(root)
    if matrix is None:
        if wanted:
            raise no_such_part(str(written), wanted, (), registry)
        return (_check(replace(read, data=data), given, registry, targets),)
    found = []
    sources = Sources(read.documents, tuple(changes))
    matrix = _check_matrix(matrix, sources, registry)
    whole = tuple(one.name for one in expand(matrix, [], _PARAMETERS, sources.error)[0])
    combinations, given = select(matrix, given, str(data.get("target")), _PARAMETERS, sources.error)
    for combination in combinations:
        if not wanted or fnmatchcase(combination.name, wanted):
            values = [point.override() for point in combination.points]
            loaded = _check(replace(read, data=data), [*values, *given], registry, targets, changes)
            labels = {point.key: point.label for point in combination.points}
            found.append(replace(loaded, variant=combination.name, labels=labels, whole=whole))
    if not found:
        names = [combination.name for combination in combinations]
        raise no_such_part(str(written), wanted, names, registry)
    return tuple(found)


@dataclass(frozen=True)
class Description:
    """What a list of recipes shows of one: (model, target), its first sentence; `error` when it cannot be read."""

    columns: tuple[str, str] = ("", "")
    purpose: str = ""
    matrix: bool = False
    error: str = ""


def describe(name: str, root: Path) -> Description:
    """What a recipe says about itself, unchecked."""
    try:
        read = _read(name, root)
    except RecipeError as error:
        return Description(error=error.message.splitlines()[0])
    model = read.data.get("model")
    sources = [str(model[key]) for key in MODEL_SOURCES if key in model] if isinstance(model, dict) else []
    shown = sources[0].rpartition("/")[2] if sources else ""
    columns = (shown, str(read.data.get("target", "")))
    return Description(columns, first_sentence(read.documents[0].text), read.data.get("matrix") is not None)


@dataclass(frozen=True)
class _Written:
    """A recipe as written: its documents, nearest first, and their values merged."""

    documents: tuple[Document, ...]
    data: dict[str, Any]


def _read(source: str | Path | Mapping[str, Any], root: Path) -> _Written:
    if isinstance(source, Mapping):
        first, folder, name = document_of(source), root / "recipes", "recipe"
    else:
        path = find_recipe(str(source), root)
        first, folder, name = load_document(path, shown_path(path, root)), path.parent, default_name(path, root)
        check_name(first, path, root)
    documents = _chain(first, folder, root)
    data = documents[-1].data
    for document in reversed(documents[:-1]):
        # A recipe's name is its own; with its parent's it would overwrite the parent's build folder.
        data = _merge({k: v for k, v in data.items() if k not in ("name", "abstract")}, document.data)
    return _Written(tuple(documents), {"name": name, **data})


def _check(
    read: _Written,
    given: list[Override],
    registry: Registry,
    targets: Mapping[str, Target],
    changes: Iterable[Override] = (),
) -> LoadedRecipe:
    """One recipe: overrides applied, validated. `changes` are overrides that the data has already."""
    data, overrides = apply_overrides(read.data, given)
    sources = Sources(read.documents, (*changes, *overrides))
    try:
        recipe = recipe_model(registry).model_validate(data)
    except ValidationError as error:
        from pipeline.json_schema import recipe_schema

        raise _first_error(error, data, sources, recipe_schema(registry), targets) from None
    if recipe.abstract and not any(override.path[:1] == ("model",) for override in given):
        message = f"recipe '{recipe.name}' is abstract: other recipes extend it"
        raise sources.error(message, ("abstract",), hint="run one of these, or give a model: model=path/to/x.tflite")
    if recipe.target not in targets:
        message = f"unknown target '{recipe.target}'{did_you_mean(recipe.target, targets)}"
        if "," in recipe.target:
            message = f"'{recipe.target}' is several targets; for these a recipe needs a matrix with the axis target"
        raise sources.error(message, ("target",), hint=list_known("targets", targets))
    return LoadedRecipe(recipe, targets[recipe.target], sources)


def _check_matrix(matrix: Any, sources: Sources, registry: Registry) -> dict[str, Any]:
    """A matrix as it is written, when it has the form of one."""
    data: dict[str, Any] = {"matrix": matrix}
    try:
        _MatrixEntry.model_validate(data)
    except ValidationError as error:
        from pipeline.json_schema import recipe_schema

        raise _first_error(error, data, sources, recipe_schema(registry)) from None
    checked: dict[str, Any] = matrix
    return checked


def _chain(first: Document, folder: Path, root: Path) -> list[Document]:
    """The recipe and everything it extends, nearest first."""
    documents, seen = [first], [first.name]
    while True:
        document = documents[-1]
        if not isinstance(document.data, dict):
            message = "a recipe is a mapping with schema, target, model, stages"
            raise document.error(message, document.locate(()))
        parent = document.data.get("extends")
        if not isinstance(parent, str):
            # Absent, or of a wrong type that the recipe model reports.
            return documents
        path = find_parent(parent, folder, root)
        if path is None:
            known = recipe_names(root, abstract=True)
            raise document.error(
                f"unknown recipe '{parent}'{did_you_mean(parent, known)}",
                document.locate(("extends",)),
                hint=list_known("recipes", known),
            )
        name = shown_path(path, root)
        if name in seen:
            circle = " -> ".join([*seen[seen.index(name) :], name])
            raise document.error(f"recipes extend each other in a circle: {circle}", document.locate(("extends",)))
        seen.append(name)
        documents.append(load_document(path, name))
        folder = path.parent


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


def _has(data: Any, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


def _contains(data: Any, path: YamlPath) -> bool:
    for part in path:
        if not _has(data, part):
            return False
        data = data[part]
    return True


def _first_error(
    error: ValidationError, data: Any, sources: Sources, schema: dict[str, Any], targets: Iterable[str] = ()
) -> RecipeError:
    """The deepest of pydantic's errors, as a union complains once per variant, and how many other places are wrong."""
    located = [(_yaml_path(detail, data), detail) for detail in error.errors(include_url=False)]
    # A misspelt key is also a missing one: the key that is there is the one to show.
    path, detail = max(located, key=lambda pair: (len(pair[0]), pair[1]["type"] == "extra_forbidden"))
    others = {
        other
        for other, also in located
        if other != path and not (also["type"] == "missing" and other[:-1] == path[:-1])
    }
    message, key, hint = _describe(detail, path, schema)
    if detail["type"] == "missing" and path == ("target",):
        hint = list_known("targets", targets)
    if others:
        hint = f"{hint}\n" if hint else ""
        hint += f"and {len(others)} more {'mistake' if len(others) == 1 else 'mistakes'}"
    return sources.error(message, path, key=key, hint=hint)


def _yaml_path(detail: ErrorDetails, data: Any) -> YamlPath:
    """pydantic's location without the names of union variants, and with stages by kind instead of by number."""
    path: list[str | int] = []
    location = list(detail["loc"])
    for index, part in enumerate(location):
        if location[:index] == ["model"] or (index == 2 and location[0] == "stages"):
            # The variant's name; it may also be a key of the variant, as `url` is.
            continue
        if path == ["stages"] and isinstance(part, int) and isinstance(data, dict):
            part = list(data)[part]
        if _has(data, part):
            data = data[part]
        elif not (index == len(location) - 1 and detail["type"] == "missing"):
            continue
        path.append(part)
    return tuple(path)


def _describe(detail: ErrorDetails, path: YamlPath, schema: dict[str, Any]) -> tuple[str, bool, str]:
    """A message, whether it is about the key rather than the value, and a hint."""
    from pipeline.json_schema import known_keys

    kind, name, where = detail["type"], str(path[-1]) if path else "", ".".join(map(str, path))
    if kind == "extra_forbidden":
        known = known_keys(schema, path[:-1])
        return f"unknown key '{name}'{did_you_mean(name, known)}", True, list_known("keys", known)
    if kind in ("union_tag_invalid", "union_tag_not_found") and path[:1] == ("stages",):
        known = known_keys(schema, ("stages",))
        return f"unknown stage '{name}'{did_you_mean(name, known)}", True, list_known("stages", known)
    if kind == "missing":
        inside = f" in {where.rpartition('.')[0]}" if "." in where else ""
        return f"missing key '{name}'{inside}", False, ""
    if kind in ("model_attributes_type", "model_type", "dict_type", "union_tag_not_found"):
        return f"{where or 'the file'}: should be a mapping{_shown_value(detail['input'])}", False, ""
    if kind == "literal_error":
        expected = detail.get("ctx", {}).get("expected", "")
        choices = [choice.strip("'") for choice in expected.replace(" or ", ", ").split(", ")]
        if detail["input"] == expected:
            # `schema: "1"`
            return f"{where}: should be the number {expected}, is the text '{detail['input']}'", False, ""
        guess = did_you_mean(str(detail["input"]), choices)
        return f"{where}: should be {expected}{_shown_value(detail['input'])}{guess}", False, ""
    if kind in ("tuple_type", "list_type"):
        value = detail["input"]
        example = f" such as [{value}, {value}]" if isinstance(value, int | float) else ""
        return f"{where}: should be a list{example}{_shown_value(value)}", False, ""
    if kind == "string_pattern_mismatch" and detail["ctx"]["pattern"] in _PATTERNS:
        return f"{where}: should be {_PATTERNS[detail['ctx']['pattern']]}{_shown_value(detail['input'])}", False, ""
    # pydantic says "Input should be …", "String should match …", "Value error, …".
    text = re.sub(r"^([A-Z]\w+ (?=should)|Value error, )", "", detail["msg"])
    shown = "" if kind in ("value_error", "model_source", "stage_mapping") else _shown_value(detail["input"])
    return f"{where}: {text}{shown}", False, ""


def _shown_value(value: Any) -> str:
    if isinstance(value, str | int | float | bool):
        return f", is {value!r}" if len(repr(value)) < 60 else ""
    if value is None:
        return ", is empty"
    return ", is a list" if isinstance(value, list | tuple) else ", is a mapping" if isinstance(value, dict) else ""


def check_variables(given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse `name=value` arguments that mean nothing. Raises RecipeError."""
    known = list(known)
    for name in given:
        if name not in known:
            message = f"unknown argument '{name}='{did_you_mean(name, known)}"
            raise RecipeError(message, hint=list_known("arguments", known))
