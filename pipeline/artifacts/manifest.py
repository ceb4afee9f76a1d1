"""manifest.json of an artifact: what it has, and whether one is as it was written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from pipeline.artifacts.digest import digest_of
from stages.system.json_text import parsed_json

FORMAT = 1
MANIFEST = "manifest.json"
# Beside it, what the stage logged.
LOG = "log.txt"
# Bytes that one may have; those of today's networks have 80,000.
MOST_BYTES = 4 << 20
# Where one has it, the remote store that it came from.
ORIGIN = "remote"
# Where one has it, and it is false, no other machine may see the artifact: what a board did.
SHARED = "shared"
# What each manifest has, and what some have.
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("key", "stage", "recipe", "created"), str),
    **dict.fromkeys(("ingredients", "files"), dict),
    "format": int,
    "seconds": (int, float),
}
_OPTIONAL: dict[str, type] = {ORIGIN: str, SHARED: bool}
# Ingredients that are looked into where they are there.
_NAMED = ("inputs", "parameters")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# More than any stage takes, and any file has.
_MOST_SECONDS, _MOST_SIZE = 1e9, 1 << 40
_MOST_CHARACTERS = 10_000


def parsed_manifest(text: str | bytes, key: str) -> dict[str, Any] | None:
    """The manifest of the artifact of a key; None for what is none, or was altered.

    Its numbers are finite and within their ranges, its names are text that can be shown, and it has no fields but those
    that this project writes.
    """
    try:
        manifest = parsed_json(text)
        if not isinstance(manifest, dict) or not _has_types(manifest):
            return None
        if not all(_is_file(name, entry) for name, entry in manifest["files"].items()):
            return None
        if not 0 <= manifest["seconds"] <= _MOST_SECONDS:
            return None
        if not all(_is_text(value) for value in manifest.values() if isinstance(value, str)):
            return None
        right = (manifest["format"], manifest["key"], digest_of(manifest["ingredients"])) == (FORMAT, key, key)
    except (ValueError, RecursionError):
        return None
    known = _TYPES.keys() | _OPTIONAL.keys()
    return {name: value for name, value in manifest.items() if name in known} if right else None


def _has_types(manifest: Mapping[str, Any]) -> bool:
    """Whether the fields that have to be there are, and each is of its type: True is no number."""
    if not manifest.keys() >= _TYPES.keys():
        return False
    ingredients = manifest["ingredients"]
    if not isinstance(ingredients, dict) or not all(isinstance(ingredients.get(name, {}), dict) for name in _NAMED):
        return False
    for name, type_ in {**_TYPES, **{name: type_ for name, type_ in _OPTIONAL.items() if name in manifest}}.items():
        value = manifest[name]
        if not isinstance(value, type_) or (isinstance(value, bool) and type_ is not bool):
            return False
    return True


def _is_file(name: str, entry: object) -> bool:
    """Whether a manifest may list a file so."""
    if not (isinstance(entry, dict) and entry.keys() == {"sha256", "size"} and stays_inside(name) and _is_text(name)):
        return False
    sha256, size = entry["sha256"], entry["size"]
    is_digest = isinstance(sha256, str) and _SHA256.fullmatch(sha256) is not None
    return is_digest and type(size) is int and 0 <= size <= _MOST_SIZE


def _is_text(value: str) -> bool:
    """Whether a name can be written and shown. Raises ValueError for half a character."""
    return len(value.encode()) <= _MOST_CHARACTERS


def content_of(manifest: Mapping[str, Any]) -> str:
    """A digest of the names and bytes of the files that a manifest lists."""
    return digest_of({name: entry["sha256"] for name, entry in manifest["files"].items()})


def stays_inside(name: str) -> bool:
    """Whether the name of a file is one below the artifact's folder."""
    path = PurePosixPath(name)
    plain = bool(path.parts) and str(path) == name and "\0" not in name
    return plain and not path.is_absolute() and ".." not in path.parts
