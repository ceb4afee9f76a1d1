"""The files in recipes/, the project's and the built-in ones: which there are, which one a name means, what it says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from pipeline.documents.document import Document
from pipeline.errors import RecipeError, list_known
from pipeline.project import RECIPES, Project, project_of
from stages.messages import escape
from stages.messages.wording import did_you_mean
from stages.system.pathname import what_lies_at

_ABSTRACT = re.compile(r"^abstract:\s*true\b", re.MULTILINE)
_SUFFIXES = (".yaml", ".yml")


def recipe_names(
    root: Path | Project, *, abstract: bool = False, nested: bool = False, built_in: bool = True
) -> list[str]:
    """Names of the recipes, sorted: the project's, then the built-in ones that it does not hide, unless `built_in`.

    Those that are only to be extended when `abstract` asks for them. `nested` adds, after each of the two, what is in
    sub-folders, as `layers/conv3x3`: single layers and such, which are listed and run by name but are no part of "all
    recipes".
    """
    project = project_of(root)
    found: dict[str, bool] = {}
    for folder in project.recipes if built_in else project.recipes[:1]:
        paths = sorted(folder.glob("*.yaml")) + (sorted(folder.glob("*/*.yaml")) if nested else [])
        for path in paths:
            found.setdefault(default_name(path, project), abstract or not _is_abstract(path))
    return [name for name, wanted in found.items() if wanted]


def is_built_in(name: str, root: Path | Project) -> bool:
    """Whether the recipe of this name is Firmline's own and not of the project."""
    own, *others = (folder / f"{name}.yaml" for folder in project_of(root).recipes)
    return not _is_file(own) and any(map(_is_file, others))


def hiding_notes(names: Iterable[str], root: Path | Project) -> list[str]:
    """A sentence for each of these recipes, by names of files as messages show them, that hides a built-in one."""
    project = project_of(root)
    notes = []
    for name in names:
        path = Path(name)
        if not project.is_standalone and path.parts[0] == RECIPES and _is_file(project.installation / path):
            notes.append(f"{name} hides the built-in recipe {default_name(project.root / path, project)}")
    return notes


def is_path(name: str) -> bool:
    """Whether a recipe is named by its file."""
    return name.endswith(_SUFFIXES)


def find_recipe(name: str, root: Path | Project) -> Path:
    """The file of a recipe given by name, or by path from the project. Raises RecipeError when there is none."""
    project = project_of(root)
    if is_path(name):
        path = project.root / name
        if not _is_file(path):
            there = what_lies_at(path)
            why = f"is {there}" if there else "does not exist"
            known = list_known("recipes", recipe_names(project, nested="/" in name))
            raise RecipeError(f"recipe file {escape.name(name)} {why}", hint=known)
        return path
    for folder in project.recipes:
        path = folder / f"{name}.yaml"
        if _is_file(path):
            return path
        if there := what_lies_at(path):
            raise RecipeError(f"recipe '{escape.name(name)}': {escape.name(project.display_path(path))} is {there}")
    if _is_file(project.root / RECIPES / f"{name}.yml"):
        raise RecipeError(f"unknown recipe '{name}'", hint=f"rename recipes/{name}.yml to {name}.yaml")
    names = recipe_names(project, nested="/" in name)
    guess = did_you_mean(name, names)
    raise RecipeError(f"unknown recipe '{escape.name(name)}'{guess}", hint=list_known("recipes", names))


def find_parent(name: str, child: Path, root: Path | Project) -> Path | None:
    """What the recipe in the file `child` extends: a path from its folder, or a name, looked up there and in recipes/.

    A project's recipe that extends one of its own name means the built-in one.
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
    """A recipe's file as messages call it: relative to the project when it lies inside."""
    return project_of(root).display_path(Path(os.path.normpath(path)))


def default_name(path: Path, root: Path | Project) -> str:
    """What a recipe is called that does not say so: as its file, with the folder inside recipes/: `layers/conv3x3`."""
    folder = _folder_of(path, root)
    return path.stem if folder is None else path.relative_to(folder).with_suffix("").as_posix()


def check_name(document: Document, path: Path, root: Path | Project) -> None:
    """In recipes/ a recipe is called as its file, so that no two share a build folder. Raises RecipeError."""
    name = document.data.get("name") if isinstance(document.data, dict) else None
    own = default_name(path, root)
    if isinstance(name, str) and name != own and _folder_of(path, root) is not None:
        message = f"name: should be '{own}', as the file is called, or be left out, is '{escape.name(name)}'"
        raise document.error(message, ("name",))


def _folder_of(path: Path, root: Path | Project) -> Path | None:
    """The folder of recipes that a file lies in."""
    return next((folder for folder in project_of(root).recipes if path.is_relative_to(folder)), None)


def first_sentence(text: str) -> str:
    """The first sentence of the comment that a recipe's file begins with, '' when it begins with none."""
    words: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if "yaml-language-server" not in line:
            words += line.lstrip("#").split()
    return re.split(r"(?<=\.) (?=[A-Z])", " ".join(words))[0]


def _is_file(path: Path) -> bool:
    """As Path.is_file, which raises for a name that is too long or has a NUL."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_abstract(path: Path) -> bool:
    try:
        # A pipe would be waited for, until somebody writes into it.
        return path.is_file() and _ABSTRACT.search(path.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        # Whoever loads it says what is wrong.
        return False
