"""What the words of a command line name: recipes, sub-recipes of a matrix, stages.

NAME            a recipe; a glob names several, `layers/*` those of a folder; the path of its file is the same
NAME:VARIANT    a sub-recipe of a matrix, or several by a glob
NAME:STAGE      one stage of a recipe, NAME:VARIANT:STAGE of a sub-recipe
A,B             several, as `recipe=A,B` takes them
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from pipeline.errors import RecipeError, list_known
from pipeline.plugins.registry import Registry
from pipeline.project import Project
from pipeline.recipes.recipe_files import default_name, find_recipe, is_path, recipe_names
from stages.messages import escape
from stages.messages.wording import did_you_mean

# The task after the stages, which fills the build folder.
PUBLISH = "publish"


def split_names(words: Iterable[str]) -> list[str]:
    """The words of a command line with each recipe of `a,b` by itself, unless that is the path of a file."""
    found: list[str] = []
    for word in words:
        if "=" in word or word.startswith("-") or "," not in word or Path(word).exists():
            found.append(word)
        else:
            found += [name.strip() for name in word.split(",") if name.strip()] or [word]
    return found


def matching_recipes(words: Sequence[str], root: Path | Project, registry: Registry) -> list[str]:
    """The recipes that a command line's words name, as `recipe=` takes them, each once.

    `doit run -n 2 'kws*' m:ad-host m:ad-host:emit` names each recipe that begins with kws, and sub-recipe m:ad-host.
    """
    found: dict[str, None] = {}
    for word in words:
        if word.startswith("-") or "=" in word:
            continue
        name, _, rest = word.partition(":")
        variant, _ = _variant_and_stage(rest, registry)
        found.update(dict.fromkeys(f"{known}:{variant}" if variant else known for known in _matching(name, root)))
    # A matrix as a whole has its sub-recipes already.
    return [name for name in found if ":" not in name or name.partition(":")[0] not in found]


def check_recipe_arguments(words: Sequence[str], given: Sequence[str], root: Path | Project) -> None:
    """Refuse words (without options and `name=value`) that name no recipe, or none of those `given` by `recipe=`.

    doit itself takes a glob that matches nothing for nothing to do. Raises RecipeError.
    """
    chosen = [name.partition(":")[0] for name in given]
    if any(one.endswith((".yaml", ".yml")) for one in chosen):
        # What a recipe outside of recipes/ is called stands in its file.
        return
    for word in words:
        name = word.partition(":")[0]
        if word.endswith(":"):
            raise RecipeError(
                f"'{escape.name(word)}' names nothing after its colon",
                hint=f"`doit run {escape.name(name)}` runs all of it",
            )
        if any(fnmatchcase(one, name) for one in chosen):
            continue
        if chosen and _matching(name, root):
            of = escape.name(",".join(given))
            raise RecipeError(
                f"'{escape.name(word)}' is not of recipe={of}; `doit run {escape.name(word)}` needs no recipe="
            )
        if not _matching(name, root):
            known = recipe_names(root, nested="/" in name)
            message = f"unknown recipe '{escape.name(name)}'{did_you_mean(name, known)}"
            if "*" in name:
                message = f"no recipe matches '{escape.name(name)}'"
            raise RecipeError(message, hint=list_known("recipes", known))


def unknown_part_error(recipe: str, part: str, variants: Sequence[str], registry: Registry) -> RecipeError:
    """The error for `recipe:part` where a whole recipe is needed; `variants` are a matrix's, empty without one."""
    variant, stage = _variant_and_stage(part, registry)
    if stage and (not variant or variant in variants):
        return RecipeError(
            f"'{escape.name(recipe)}:{part}' is one stage, not a recipe",
            hint=f"`doit run {escape.name(recipe)}:{part}` runs it",
        )
    if variants:
        message = f"matrix '{recipe}' has no '{escape.name(part)}'{did_you_mean(part, variants)}"
        return RecipeError(message, hint=list_known("sub-recipes", variants))
    message = f"recipe '{recipe}' has no matrix and no stage '{escape.name(part)}'{did_you_mean(part, registry.kinds)}"
    return RecipeError(message, hint=list_known("stages", registry.kinds))


def check_matrix_arguments(words: Sequence[str], matrix: str, registry: Registry) -> None:
    """Refuse `matrix:stage`, which names no sub-recipe. Raises RecipeError."""
    for word in words:
        name, _, part = word.partition(":")
        if name == matrix and part in _stages(registry):
            shown = escape.name(matrix)
            raise RecipeError(
                f"'{shown}:{part}' is a stage, and '{shown}' a matrix of recipes",
                hint=f"`doit run '{shown}:*:{part}'` runs it of all of them",
            )


def _matching(name: str, root: Path | Project) -> list[str]:
    """The recipes that a name, a glob or a path means; a glob is not about the built-in ones of a project.

    Raises RecipeError for a path that is no file.
    """
    if is_path(name):
        path = find_recipe(name, root)
        # In recipes/ it is the same recipe as by its name.
        own = default_name(path, root)
        known = recipe_names(root, abstract=True, nested=True)
        return [own if own in known and find_recipe(own, root) == path else name]
    # One that is abstract is named in full or not at all; `*` is not about sub-folders, `layers/*` is.
    usual = recipe_names(root, nested="/" in name, built_in=False)
    return [
        known
        for known in recipe_names(root, abstract=True, nested=True)
        if known == name or (fnmatchcase(known, name) and known in usual)
    ]


def _variant_and_stage(rest: str, registry: Registry) -> tuple[str, str]:
    """What stands after a recipe's name and its colon: a sub-recipe, a stage, or both; '' for what is not there."""
    variant, _, stage = rest.rpartition(":")
    return (variant, stage) if stage in _stages(registry) else (rest.rstrip(":"), "")


def _stages(registry: Registry) -> tuple[str, ...]:
    return (*registry.kinds, PUBLISH)
