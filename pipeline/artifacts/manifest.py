"""manifest.json of an artifact: fields and validation."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from pipeline.artifacts.digest import digest_of
from stages.support.system.json_text import parsed_json

FORMAT = 1
MANIFEST = "manifest.json"
# The stage's log.
LOG = "log.txt"
# The most bytes of a manifest; today's have up to 80,000.
MOST_BYTES = 4 << 20
# Optional: the remote store that the artifact came from.
ORIGIN = "remote"
# Optional: if false, no other machine may see the artifact, since it depends on a board.
SHARED = "shared"
# Required and optional fields.
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("key", "stage", "recipe", "created"), str),
    **dict.fromkeys(("ingredients", "files"), dict),
    "format": int,
    "seconds": (int, float),
}
_OPTIONAL: dict[str, type] = {ORIGIN: str, SHARED: bool}
# Ingredients that must be mappings if they exist.
_NAMED = ("inputs", "parameters")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Limits of valid values.
_MOST_SECONDS, _MOST_SIZE = 1e9, 1 << 40
_MOST_CHARACTERS = 10_000


def parsed_manifest(text: str | bytes, key: str) -> dict[str, Any] | None:
    """Return the manifest of an artifact; None if it is invalid or was altered.

    Numbers are finite and within their limits, names can be displayed, and unknown fields are removed.
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
        is_valid = (manifest["format"], manifest["key"], digest_of(manifest["ingredients"])) == (FORMAT, key, key)
    except (ValueError, RecursionError):
        return None
    known = _TYPES.keys() | _OPTIONAL.keys()
    return {name: value for name, value in manifest.items() if name in known} if is_valid else None


def _has_types(manifest: Mapping[str, Any]) -> bool:
    """Return whether all required fields exist and have their types (bool is not int)."""
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
    """Return whether a file entry is valid."""
    if not (isinstance(entry, dict) and entry.keys() == {"sha256", "size"} and stays_inside(name) and _is_text(name)):
        return False
    sha256, size = entry["sha256"], entry["size"]
    is_digest = isinstance(sha256, str) and _SHA256.fullmatch(sha256) is not None
    return is_digest and type(size) is int and 0 <= size <= _MOST_SIZE


def _is_text(value: str) -> bool:
    """Return whether a name has a valid length. Raises ValueError for a lone surrogate."""
    return len(value.encode()) <= _MOST_CHARACTERS


def content_of(manifest: Mapping[str, Any]) -> str:
    """Return a digest of names and bytes of the files that a manifest lists."""
    return digest_of({name: entry["sha256"] for name, entry in manifest["files"].items()})


def stays_inside(name: str) -> bool:
    """Return whether a file name is a path below the artifact's folder."""
    path = PurePosixPath(name)
    plain = bool(path.parts) and str(path) == name and "\0" not in name
    return plain and not path.is_absolute() and ".." not in path.parts
