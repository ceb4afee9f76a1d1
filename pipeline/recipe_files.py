"""The files in recipes/: which there are, which one a name means, what one says about itself."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pipeline.document import Document
from pipeline.errors import RecipeError, did_you_mean, list_known

_ABSTRACT = re.compile(r"^abstract:\s*true\b", re.MULTILINE)
_SUFFIXES = (".yaml", ".yml")


def recipe_names(root: Path, *, abstract: bool = False, nested: bool = False) -> list[str]:
    """Names of the recipes in `recipes/`, sorted; those that are only to be extended when `abstract` asks for them.

    `nested` adds, after these, what is in sub-folders, as `layers/conv3x3`: single layers and such, which are listed
    and run by name but are no part of "all recipes".
    """
    folder = root / "recipes"
    paths = sorted(folder.glob("*.yaml")) + (sorted(folder.glob("*/*.yaml")) if nested else [])
    return [default_name(path, root) for path in paths if abstract or not _is_abstract(path)]


def find_recipe(name: str, root: Path) -> Path:
    """The file of a recipe given by name, or by path from the root. Raises RecipeError when there is none."""
    known = recipe_names(root, nested="/" in name)
    if name.endswith(_SUFFIXES):
        path = root / name
        if not path.is_file():
            raise RecipeError(f"recipe file {name} does not exist", hint=list_known("recipes", known))
        return path
    path = root / "recipes" / f"{name}.yaml"
    if not path.is_file():
        if path.with_suffix(".yml").is_file():
            raise RecipeError(f"unknown recipe '{name}'", hint=f"rename recipes/{name}.yml to {name}.yaml")
        raise RecipeError(f"unknown recipe '{name}'{did_you_mean(name, known)}", hint=list_known("recipes", known))
    return path


def find_parent(name: str, folder: Path, root: Path) -> Path | None:
    """What a recipe in `folder` extends: a path from that folder, or a name looked up there and then in recipes/."""
    if name.endswith(_SUFFIXES):
        candidates = [folder / name]
    else:
        candidates = [folder / f"{name}.yaml", root / "recipes" / f"{name}.yaml"]
    return next((path for path in candidates if path.is_file()), None)


def shown_path(path: Path, root: Path) -> str:
    """A recipe's file as messages call it: relative to the project when it lies inside."""
    resolved = Path(os.path.normpath(path))
    return str(resolved.relative_to(root)) if resolved.is_relative_to(root) else str(resolved)


def default_name(path: Path, root: Path) -> str:
    """What a recipe is called that does not say so: as its file, with the folder inside recipes/: `layers/conv3x3`."""
    folder = root / "recipes"
    return path.relative_to(folder).with_suffix("").as_posix() if path.is_relative_to(folder) else path.stem


def check_name(document: Document, path: Path, root: Path) -> None:
    """In recipes/ a recipe is called as its file, so that no two share a build folder. Raises RecipeError."""
    name = document.data.get("name") if isinstance(document.data, dict) else None
    own = default_name(path, root)
    if isinstance(name, str) and name != own and path.is_relative_to(root / "recipes"):
        message = f"name: should be '{own}', as the file is called, or be left out, is '{name}'"
        raise document.error(message, document.locate(("name",)))


def first_sentence(text: str) -> str:
    """The first sentence of the comment that a recipe's file begins with, '' when it begins with none."""
    words: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if "yaml-language-server" not in line:
            words += line.lstrip("#").split()
    return re.split(r"(?<=\.) (?=[A-Z])", " ".join(words))[0]


def _is_abstract(path: Path) -> bool:
    try:
        return _ABSTRACT.search(path.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        # Whoever loads it says what is wrong.
        return False
