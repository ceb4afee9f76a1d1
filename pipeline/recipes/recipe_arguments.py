"""Recipes, variants and stages on the command line.

NAME            a recipe, by name, glob (`layers/*`) or path of its file
NAME:VARIANT    a variant of a matrix, or several by a glob
NAME:STAGE      a stage of a recipe; NAME:VARIANT:STAGE: of a variant
A,B             several recipes, as in `recipe=A,B`
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from pipeline.errors import RecipeError, list_known
from pipeline.plugins.registry import Registry
from pipeline.project import Project
from pipeline.recipes.recipe_files import default_name, find_recipe, is_path, recipe_names
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean

# Task after the stages that fills the build folder.
PUBLISH = "publish"


def split_names(words: Iterable[str]) -> list[str]:
    """Split `a,b` into recipes, unless it is the path of a file."""
    names: list[str] = []
    for word in words:
        if "=" in word or word.startswith("-") or "," not in word or Path(word).exists():
            names.append(word)
        else:
            names += [name.strip() for name in word.split(",") if name.strip()] or [word]
    return names


def matching_recipes(words: Sequence[str], root: Path | Project, registry: Registry) -> list[str]:
    """Return the named recipes and variants, each once, without stages.

    `doit run -n 2 'kws*' m:ad-host m:ad-host:emit` names all recipes that start with kws, and the variant m:ad-host.
    """
    matches: dict[str, None] = {}
    for word in words:
        if word.startswith("-") or "=" in word:
            continue
        name, _, rest = word.partition(":")
        variant, _ = _variant_and_stage(rest, registry)
        matches.update(dict.fromkeys(f"{known}:{variant}" if variant else known for known in _matching(name, root)))
    # A matrix includes its variants.
    return [name for name in matches if ":" not in name or name.partition(":")[0] not in matches]


def recipes_and_stages(words: Sequence[str], root: Path | Project, registry: Registry) -> list[tuple[str, str]]:
    """Return the named recipes and variants, each once, with its last stage ('': all).

    `kws:emit` ends at the stage emit. Words without a matching recipe give nothing. Raises RecipeError for two stages.
    """
    selected: dict[tuple[str, str], None] = {}
    for word in words:
        recipe, _, stage = word.rpartition(":")
        if not recipe or stage not in _stages(registry):
            recipe, stage = word, ""
        elif recipe.rpartition(":")[2] in _stages(registry):
            name, _, rest = recipe.partition(":")
            raise unknown_part_error(name, rest, (), registry)
        until = "" if stage == PUBLISH else stage
        selected |= dict.fromkeys((name, until) for name in matching_recipes([recipe], root, registry))
    return list(selected)


def check_recipe_arguments(words: Sequence[str], selected: Sequence[str], root: Path | Project) -> None:
    """Raise RecipeError for words without a matching recipe.

    words: arguments without options and `name=value`. doit ignores a glob without matches.
    selected: the value of `recipe=`; if not empty, words must be among them.
    """
    selected_names = [name.partition(":")[0] for name in selected]
    if any(selected_name.endswith((".yaml", ".yml")) for selected_name in selected_names):
        # The name of a recipe outside of recipes/ is in its file.
        return
    for word in words:
        name = word.partition(":")[0]
        if word.endswith(":"):
            raise RecipeError(
                f"'{escape.name(word)}' has no variant or stage after the colon",
                hint=f"`doit run {escape.name(name)}` runs the whole recipe",
            )
        if any(fnmatchcase(selected_name, name) for selected_name in selected_names):
            continue
        if selected_names and _matching(name, root):
            of = escape.name(",".join(selected))
            raise RecipeError(f"'{escape.name(word)}' is not selected by recipe={of}; remove recipe= to run it")
        if not _matching(name, root):
            known = recipe_names(root, nested="/" in name)
            message = f"unknown recipe '{escape.name(name)}'{did_you_mean(name, known)}"
            if "*" in name:
                message = f"no recipe matches '{escape.name(name)}'"
            raise RecipeError(message, hint=list_known("recipes", known))


def unknown_part_error(recipe: str, part: str, variants: Sequence[str], registry: Registry) -> RecipeError:
    """Return the error for `recipe:part` where a recipe or variant is expected.

    variants: of the matrix; empty for a recipe without one.
    """
    variant, stage = _variant_and_stage(part, registry)
    if stage and (not variant or variant in variants):
        return RecipeError(
            f"'{escape.name(recipe)}:{part}' is a stage, not a recipe",
            hint=f"`doit run {escape.name(recipe)}:{part}` runs it",
        )
    if variants:
        message = f"matrix '{recipe}' has no variant '{escape.name(part)}'{did_you_mean(part, variants)}"
        return RecipeError(message, hint=list_known("variants", variants))
    message = f"recipe '{recipe}' has no matrix and no stage '{escape.name(part)}'{did_you_mean(part, registry.kinds)}"
    return RecipeError(message, hint=list_known("stages", registry.kinds))


def check_matrix_arguments(words: Sequence[str], matrix: str, registry: Registry) -> None:
    """Raise RecipeError for `matrix:stage` without a variant."""
    for word in words:
        name, _, part = word.partition(":")
        if name == matrix and part in _stages(registry):
            shown = escape.name(matrix)
            raise RecipeError(
                f"'{shown}:{part}' is a stage, but '{shown}' is a matrix",
                hint=f"`doit run '{shown}:*:{part}'` runs it for all variants",
            )


def _matching(name: str, root: Path | Project) -> list[str]:
    """Return the recipes for a name, glob or path.

    A project's globs do not match built-in recipes.

    Raises RecipeError for a path that is not a file.
    """
    if is_path(name):
        path = find_recipe(name, root)
        # A file in recipes/ is known by its name.
        recipe = default_name(path, root)
        known = recipe_names(root, abstract=True, nested=True)
        return [recipe if recipe in known and find_recipe(recipe, root) == path else name]
    # Globs do not match abstract recipes, and `*` does not match sub-folders.
    listed = recipe_names(root, nested="/" in name, built_in=False)
    return [
        known
        for known in recipe_names(root, abstract=True, nested=True)
        if known == name or (fnmatchcase(known, name) and known in listed)
    ]


def _variant_and_stage(rest: str, registry: Registry) -> tuple[str, str]:
    """Split the text after a recipe's name and colon into variant and stage, each possibly ''."""
    variant, _, stage = rest.rpartition(":")
    return (variant, stage) if stage in _stages(registry) else (rest.rstrip(":"), "")


def _stages(registry: Registry) -> tuple[str, ...]:
    return (*registry.kinds, PUBLISH)
