"""What is in an artifact store, and whether it is as it was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.artifacts.digest import hash_file
from pipeline.artifacts.manifest import LOG, ORIGIN
from stages.system.regular_file import open_regular

if TYPE_CHECKING:
    from pipeline.artifacts.store import Store


@dataclass(frozen=True)
class Entry:
    """An artifact: the stage and the recipe that made it, in how many seconds, and when (UTC, ISO 8601).

    `used` is the day of the last run that found it, `bytes` are those of its files. `damage` is '' where the manifest
    can be read; without one nothing else is known than key and `used`. `remote` is the remote store that it came from.
    """

    key: str
    stage: str = ""
    recipe: str = ""
    created: str = ""
    used: str = ""
    seconds: float = 0.0
    bytes: int = 0
    remote: str = ""
    damage: str = ""


def inventory(store: Store) -> list[Entry]:
    """All artifacts, the last made first. What another process deletes meanwhile is not there."""
    found = [_entry(store, folder) for folder in (store.folder / "artifacts").glob("*/*")]
    return sorted((one for one in found if one is not None), key=lambda one: (one.created, one.key), reverse=True)


def _entry(store: Store, folder: Path) -> Entry | None:
    try:
        used = datetime.fromtimestamp(folder.stat().st_mtime, UTC).date().isoformat()
    except OSError:
        return None
    manifest = store.manifest(folder.name)
    if manifest is None:
        return Entry(folder.name, used=used, damage="its manifest.json cannot be read, or was altered")
    return Entry(
        folder.name,
        manifest["stage"],
        manifest["recipe"],
        manifest["created"],
        used,
        manifest["seconds"],
        sum(one["size"] for one in manifest["files"].values()),
        str(manifest.get(ORIGIN, "")),
    )


def damages(store: Store, entry: Entry) -> Iterator[str]:
    """What is not as it was written, each file read anew whatever its times say; nothing where all is."""
    manifest = store.manifest(entry.key)
    if manifest is None:
        yield "its manifest.json cannot be read, or was altered"
        return
    try:
        open_regular(store.path(entry.key) / LOG).close()
    except OSError as error:
        yield f"{LOG} cannot be read: {error.strerror}"
    files = store.path(entry.key) / "files"
    there = {path.relative_to(files).as_posix() for path in files.rglob("*") if not path.is_dir() or path.is_symlink()}
    for name in sorted(there | manifest["files"].keys()):
        if name not in manifest["files"]:
            yield f"{name} is not of it"
        elif name not in there:
            yield f"{name} is gone"
        else:
            try:
                same = hash_file(files / name) == manifest["files"][name]["sha256"]
            except OSError as error:
                yield f"{name} cannot be read: {error.strerror}"
                continue
            if not same:
                yield f"{name} has other bytes"
