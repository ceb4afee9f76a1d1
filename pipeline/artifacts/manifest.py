"""manifest.json of an artifact: what it has, and whether one is as it was written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from pipeline.artifacts.digest import digest_of
from stages.system.json_text import parsed_json

FORMAT = 1
MANIFEST = "manifest.json"
# Where one has it, the remote store that it came from.
ORIGIN = "remote"
# Where one has it, and it is false, no other machine may see the artifact: what a board did.
SHARED = "shared"
# What each manifest has.
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("key", "stage", "recipe", "created"), str),
    **dict.fromkeys(("ingredients", "files"), dict),
    "format": int,
    "seconds": (int, float),
}


def parsed_manifest(text: str | bytes, key: str) -> dict[str, Any] | None:
    """The manifest of the artifact of a key; None for what is none, or was altered."""
    try:
        manifest = parsed_json(text)
    except ValueError:
        return None
    if not (isinstance(manifest, dict) and _TYPES.keys() <= manifest.keys()):
        return None
    if not all(isinstance(manifest[name], type_) for name, type_ in _TYPES.items()):
        return None
    for entry in manifest["files"].values():
        if not (isinstance(entry, dict) and isinstance(entry.get("sha256"), str) and type(entry.get("size")) is int):
            return None
    right = (manifest["format"], manifest["key"], digest_of(manifest["ingredients"])) == (FORMAT, key, key)
    return manifest if right else None


def content_of(manifest: Mapping[str, Any]) -> str:
    """A digest of the names and bytes of the files that a manifest lists."""
    return digest_of({name: entry["sha256"] for name, entry in manifest["files"].items()})


def stays_inside(name: str) -> bool:
    """Whether the name of a file is one below the artifact's folder."""
    path = PurePosixPath(name)
    plain = bool(path.parts) and str(path) == name and "\0" not in name
    return plain and not path.is_absolute() and ".." not in path.parts
