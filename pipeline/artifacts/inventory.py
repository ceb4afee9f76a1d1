"""List the artifacts of a store and verify their files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.artifacts.digest import hash_file
from pipeline.artifacts.manifest import LOG, ORIGIN
from stages.support.system.regular_file import open_regular

if TYPE_CHECKING:
    from pipeline.artifacts.store import Store


@dataclass(frozen=True)
class Entry:
    """An artifact: stage, recipe, seconds of the stage's run, time of creation (UTC, ISO 8601).

    used    day of the last run that used it
    bytes   size of its files
    remote  the remote store that it came from, or ''
    damage  '' if the manifest can be read; without a manifest only key and `used` are known
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
    """Return all artifacts, the newest first, without those deleted meanwhile."""
    listed = [_entry(store, folder) for folder in (store.folder / "artifacts").glob("*/*")]
    return sorted(
        (entry for entry in listed if entry is not None), key=lambda entry: (entry.created, entry.key), reverse=True
    )


def _entry(store: Store, folder: Path) -> Entry | None:
    try:
        used = datetime.fromtimestamp(folder.stat().st_mtime, UTC).date().isoformat()
    except OSError:
        return None
    manifest = store.manifest(folder.name)
    if manifest is None:
        return Entry(folder.name, used=used, damage="its manifest.json cannot be read or was altered")
    return Entry(
        folder.name,
        manifest["stage"],
        manifest["recipe"],
        manifest["created"],
        used,
        manifest["seconds"],
        sum(file["size"] for file in manifest["files"].values()),
        str(manifest.get(ORIGIN, "")),
    )


def damages(store: Store, entry: Entry) -> Iterator[str]:
    """Yield differences from the manifest; reads every file, even if its times are unchanged."""
    manifest = store.manifest(entry.key)
    if manifest is None:
        yield "its manifest.json cannot be read or was altered"
        return
    try:
        open_regular(store.path(entry.key) / LOG).close()
    except OSError as error:
        yield f"{LOG} cannot be read: {error.strerror}"
    files = store.path(entry.key) / "files"
    names = {path.relative_to(files).as_posix() for path in files.rglob("*") if not path.is_dir() or path.is_symlink()}
    for name in sorted(names | manifest["files"].keys()):
        if name not in manifest["files"]:
            yield f"{name} is not in the manifest"
        elif name not in names:
            yield f"{name} is missing"
        else:
            try:
                same = hash_file(files / name) == manifest["files"][name]["sha256"]
            except OSError as error:
                yield f"{name} cannot be read: {error.strerror}"
                continue
            if not same:
                yield f"{name} has changed bytes"
