"""Recipe files of a project and of the installation: listing, lookup by name, names."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from pipeline.documents.document import Document
from pipeline.errors import RecipeError, list_known
from pipeline.project import RECIPES, Project, project_of
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean
from stages.support.system.pathname import describe_path

_ABSTRACT = re.compile(r"^abstract:\s*true\b", re.MULTILINE)
_SUFFIXES = (".yaml", ".yml")


def recipe_names(
    root: Path | Project, *, abstract: bool = False, nested: bool = False, built_in: bool = True
) -> list[str]:
    """Return the sorted names of the project's recipes, then of built-in recipes.

    abstract: include recipes that can only be extended.
    nested: include recipes in sub-folders, such as `layers/conv3x3`, after those of each folder.
    built_in: include built-in recipes.
    """
    project = project_of(root)
    included: dict[str, bool] = {}
    for folder in project.recipes if built_in else project.recipes[:1]:
        paths = sorted(folder.glob("*.yaml")) + (sorted(folder.glob("*/*.yaml")) if nested else [])
        for path in paths:
            included.setdefault(default_name(path, project), abstract or not _is_abstract(path))
    return [name for name, is_listed in included.items() if is_listed]


def is_built_in(name: str, root: Path | Project) -> bool:
    """Return whether a name refers to a built-in recipe, not to one of the project."""
    project_file, *built_in_files = (folder / f"{name}.yaml" for folder in project_of(root).recipes)
    return not _is_file(project_file) and any(map(_is_file, built_in_files))


def hiding_notes(names: Iterable[str], root: Path | Project) -> list[str]:
    """Return a note for each recipe file (by display path) that hides a built-in recipe."""
    project = project_of(root)
    notes = []
    for name in names:
        path = Path(name)
        if not project.is_standalone and path.parts[0] == RECIPES and _is_file(project.installation / path):
            notes.append(f"{name} hides the built-in recipe {default_name(project.root / path, project)}")
    return notes


def is_path(name: str) -> bool:
    """Return whether a recipe argument is a path, not a name."""
    return name.endswith(_SUFFIXES)


def find_recipe(name: str, root: Path | Project) -> Path:
    """Return the file of a recipe, by name or by path relative to the project.

    Raises RecipeError.
    """
    project = project_of(root)
    if is_path(name):
        path = project.root / name
        if not _is_file(path):
            file_type = describe_path(path)
            why = f"is {file_type}" if file_type else "does not exist"
            known = list_known("recipes", recipe_names(project, nested="/" in name))
            raise RecipeError(f"recipe file {escape.name(name)} {why}", hint=known)
        return path
    for folder in project.recipes:
        path = folder / f"{name}.yaml"
        if _is_file(path):
            return path
        if file_type := describe_path(path):
            raise RecipeError(f"recipe '{escape.name(name)}': {escape.name(project.display_path(path))} is {file_type}")
    if _is_file(project.root / RECIPES / f"{name}.yml"):
        raise RecipeError(f"unknown recipe '{name}'", hint=f"rename recipes/{name}.yml to {name}.yaml")
    names = recipe_names(project, nested="/" in name)
    guess = did_you_mean(name, names)
    raise RecipeError(f"unknown recipe '{escape.name(name)}'{guess}", hint=list_known("recipes", names))


def find_parent(name: str, child: Path, root: Path | Project) -> Path | None:
    """Return the file that a recipe extends, or None.

    name: a path relative to the folder of `child`, or a name, looked up there and in recipes/. A project's recipe that
        extends its own name extends the built-in recipe.
    """
    if is_path(name):
        candidates = [child.parent / name]
    else:
        project = project_of(root)
        candidates = [folder / f"{name}.yaml" for folder in (child.parent, *project.recipes)]
        others = [path for path in candidates if path != child]
        if any(map(_is_file, others)):
            candidates = others
    return next((path for path in candidates if _is_file(path)), None)


def shown_path(path: Path, root: Path | Project) -> str:
    """Return the display path of a recipe file."""
    return project_of(root).display_path(Path(os.path.normpath(path)))


def default_name(path: Path, root: Path | Project) -> str:
    """Return the default name of a recipe: its path below recipes/, such as `layers/conv3x3`."""
    folder = _folder_of(path, root)
    return path.stem if folder is None else path.relative_to(folder).with_suffix("").as_posix()


def check_name(document: Document, path: Path, root: Path | Project) -> None:
    """Raise RecipeError if a recipe in recipes/ has another name than its file.

    Names must be unique, since each recipe has a build folder.
    """
    name = document.data.get("name") if isinstance(document.data, dict) else None
    expected = default_name(path, root)
    if isinstance(name, str) and name != expected and _folder_of(path, root) is not None:
        message = f"name: should be '{expected}', the name of the file, or be omitted; is '{escape.name(name)}'"
        raise document.error(message, ("name",))


def _folder_of(path: Path, root: Path | Project) -> Path | None:
    """Return the recipe folder that contains a file, or None."""
    return next((folder for folder in project_of(root).recipes if path.is_relative_to(folder)), None)


def first_sentence(text: str) -> str:
    """Return the first sentence of the comment at the start of a recipe file, or ''."""
    words: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if "yaml-language-server" not in line:
            words += line.lstrip("#").split()
    return re.split(r"(?<=\.) (?=[A-Z])", " ".join(words))[0]


def _is_file(path: Path) -> bool:
    """Return Path.is_file, or False for a name that is too long or contains a NUL."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_abstract(path: Path) -> bool:
    try:
        # Reading a named pipe would wait for a writer.
        return path.is_file() and _ABSTRACT.search(path.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        # Loading the recipe reports the error.
        return False
