"""The artifact store: what an action left, addressed by its key, whole or not there at all.

    <store>/artifacts/ab/abcd…/manifest.json    what it is, what it depends on, its files with sha256 and size
                               files/           what the stage wrote, read-only
                               log.txt          what the stage logged
           /building/abcd….<n>/                 an artifact being made by the holder of the key's lock
           /locks/abcd….lock                    one per key: two runs do not make the same artifact twice
           /locks/store.lock                    shared while a run lasts, exclusive while the store is trimmed
           /runs/<recipe>@<target>.json         the keys and overrides that this recipe had last, for `doit explain`
           /digests.json, /tools.json           caches: they save time and may be deleted

An artifact is written under `building/`, every file and folder of it is fsynced, and then it is renamed. The kernel
drops locks of a dead process, so a folder in `building/` whose lock is free was left by one that was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from pipeline.digest import DigestCache, digest_of, hash_file, write_whole
from pipeline.errors import DiskFullError, StoreError, is_disk_full
from pipeline.interruption import unfinished

FORMAT = 1


@dataclass(frozen=True)
class Artifact:
    """A verified artifact: `files` is the folder that consumers read; `manifest` is its manifest.json."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def files(self) -> Path:
        """The folder of what the stage wrote."""
        return self.folder / "files"

    @property
    def key(self) -> str:
        """The key of the action that made it."""
        return str(self.manifest["key"])

    @property
    def seconds(self) -> float:
        """How long the stage ran when it made this."""
        return float(self.manifest["seconds"])

    @property
    def log(self) -> str:
        """What the stage logged when it made this."""
        with contextlib.suppress(OSError):
            return (self.folder / "log.txt").read_text(encoding="utf-8")
        return ""


@dataclass(frozen=True)
class LastRun:
    """What a recipe had when it ran last: `when` in seconds since 1970, its overrides as typed, its keys by kind."""

    target: str
    when: float
    changes: tuple[str, ...]
    keys: Mapping[str, str]


class Store:
    """A folder of artifacts. Processes and threads may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            for name in ("artifacts", "building", "locks", "runs"):
                (folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _store_error(error, folder) from None
        self.digests = DigestCache(folder / "digests.json")

    def path(self, key: str) -> Path:
        """Where the artifact of a key is, or would be."""
        return self.folder / "artifacts" / key[:2] / key

    def find(self, key: str) -> Artifact | None:
        """The artifact of a key if it is there and every file is as it was written, else None.

        A file whose times, size and inode are as remembered is taken as unchanged; any other is hashed.
        """
        folder = self.path(key)
        manifest = self.manifest(key)
        if manifest is None or digest_of(manifest["ingredients"]) != key:
            return None
        listed: dict[str, dict[str, Any]] = manifest["files"]
        try:
            if set(_files_below(folder / "files")) != listed.keys():
                return None
            if any(self.digests.digest(folder / "files" / name) != entry["sha256"] for name, entry in listed.items()):
                return None
        except OSError:
            return None
        return Artifact(folder, manifest)

    def mark_used(self, artifact: Artifact) -> None:
        """Note, to the day, that a run found this artifact: `trim` counts its age from here."""
        with contextlib.suppress(OSError):
            if artifact.folder.stat().st_mtime < time.time() - 86400:
                os.utime(artifact.folder)

    def manifest(self, key: str) -> dict[str, Any] | None:
        """The manifest of a key without a look at the files; None when there is none or it cannot be read."""
        try:
            manifest = json.loads((self.path(key) / "manifest.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        needed = {"format", "ingredients", "files", "seconds", "created", "key"}
        if not (isinstance(manifest, dict) and needed <= manifest.keys()):
            return None
        return manifest if (manifest["format"], manifest["key"]) == (FORMAT, key) else None

    def make(
        self,
        ingredients: Mapping[str, Any],
        write: Callable[[Path, Callable[[str], None]], None],
        *,
        recipe: str,
        force: bool = False,
        waiting: Callable[[], None] = lambda: None,
    ) -> tuple[Artifact, bool]:
        """The artifact of these ingredients, and whether it was there already.

        `write(folder, log)` fills the folder; it is called only when no other process made the artifact meanwhile, or
        when `force`. `waiting` is called before this process waits for another one that makes it. Whatever `write`
        raises passes through, except that an OSError counts as the store's; the store is then as before. Raises
        StoreError, DiskFullError.
        """
        key = digest_of(ingredients)
        with self.locked(key, waiting):
            found = None if force else self.find(key)
            if found is not None:
                return found, True
            # A fresh name: a compiler that outlived a killed run may still write into that run's folder.
            building = self.folder / "building" / f"{key}.{time.time_ns()}"
            with unfinished(building):
                try:
                    (building / "files").mkdir(parents=True)
                    started = time.monotonic()
                    with (building / "log.txt").open("w", encoding="utf-8") as log:
                        write(building / "files", lambda line: _log_line(log, line))
                    manifest = {
                        "format": FORMAT,
                        "key": key,
                        "stage": ingredients["stage"],
                        "recipe": recipe,
                        "created": datetime.now(UTC).isoformat(timespec="seconds"),
                        "seconds": round(time.monotonic() - started, 3),
                        "ingredients": dict(ingredients),
                        "files": _seal(building / "files"),
                    }
                    self._publish(building, key, manifest)
                except OSError as error:
                    raise _store_error(error, self.folder) from error
                finally:
                    _remove(building)
        return Artifact(self.path(key), manifest), False

    def _publish(self, building: Path, key: str, manifest: dict[str, Any]) -> None:
        with (building / "manifest.json").open("w", encoding="utf-8") as stream:
            json.dump(manifest, stream, indent=1, sort_keys=True)
        for folder, _, names in os.walk(building, topdown=False):
            for name in names:
                _fsync(Path(folder, name))
            _fsync(Path(folder))
        place = self.path(key)
        place.parent.mkdir(exist_ok=True)
        if place.exists():
            # Damaged, or made again by force: moved away first, since a folder cannot replace one that is not empty.
            damaged = building.with_name(f"{building.name}.replaced")
            place.rename(damaged)
            building.rename(place)
            _remove(damaged)
        else:
            building.rename(place)
        _fsync(place.parent)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Keeps the store from being trimmed while a run lasts; on the way in, clears what killed runs left."""
        try:
            stream = self._lock_file("store")
            fcntl.flock(stream, fcntl.LOCK_SH)
            self._clear_abandoned()
        except OSError as error:
            raise _store_error(error, self.folder) from error
        with stream:
            try:
                yield
            finally:
                self.digests.save()

    def last_run(self, recipe: str, target: str) -> LastRun | None:
        """The last run of a recipe: on this target, or else on the one it ran on most recently."""
        runs = self.folder / "runs"
        own = runs / _run_file(recipe, target)
        others = sorted(runs.glob(_run_file(recipe, "*")), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in [own, *others]:
            with contextlib.suppress(OSError, ValueError):
                noted = json.loads(path.read_text(encoding="utf-8"))
                if isinstance(noted, dict) and noted.get("format") == FORMAT:
                    on = path.stem.rpartition("@")[2]
                    return LastRun(on, path.stat().st_mtime, tuple(noted["changes"]), noted["keys"])
        return None

    def remember_keys(self, recipe: str, target: str, keys: Mapping[str, str], changes: Sequence[str] = ()) -> None:
        """Note the keys of stages that are done, over those noted before, and the overrides of the run."""
        path = self.folder / "runs" / _run_file(recipe, target)
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            keys = {**json.loads(path.read_text(encoding="utf-8"))["keys"], **keys}
        # Only `doit explain` reads this; a run does not fail for it.
        with contextlib.suppress(OSError):
            write_whole(path, json.dumps({"format": FORMAT, "changes": list(changes), "keys": keys}))

    def trim(self, *, days: float | None = None, size: int | None = None) -> tuple[int, int]:
        """Delete artifacts older than `days`, then the oldest until at most `size` bytes remain.

        Returns how many artifacts and bytes went. Age counts from when an artifact was made or last found by a run.
        Raises StoreError when a run is using the store, or it cannot be written.
        """
        with self._lock_file("store") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                message = f"the store {self.folder} is in use by a run"
                raise StoreError(message, hint="try again when it is done") from None
            try:
                return self._trim(days, size)
            except OSError as error:
                raise _store_error(error, self.folder) from error

    def _trim(self, days: float | None, size: int | None) -> tuple[int, int]:
        found = []
        for folder in (self.folder / "artifacts").glob("*/*"):
            bytes_ = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            found.append((folder.stat().st_mtime, bytes_, folder))
        found.sort()
        total = sum(bytes_ for _, bytes_, _ in found)
        count = freed = 0
        for used, bytes_, folder in found:
            too_old = days is not None and used < time.time() - days * 86400
            if too_old or (size is not None and total - freed > size):
                # Renamed first: a kill in the middle leaves no artifact that is half deleted.
                gone = self.folder / "building" / f"{folder.name}.trimmed"
                folder.rename(gone)
                _remove(gone)
                count, freed = count + 1, freed + bytes_
        self._clear_abandoned()
        for lock in (self.folder / "locks").glob("*.lock"):
            if lock.name != "store.lock":
                lock.unlink()
        return count, freed

    @contextlib.contextmanager
    def locked(self, name: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Holds the lock `name` (a key, or a recipe's build folder); calls `waiting` first if another holds it."""
        with self._lock_file(name) as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def _clear_abandoned(self) -> None:
        for folder in (self.folder / "building").iterdir():
            key = folder.name.partition(".")[0]
            with self._lock_file(key) as stream, contextlib.suppress(BlockingIOError):
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)

    def _lock_file(self, name: str) -> TextIO:
        try:
            return (self.folder / "locks" / f"{name}.lock").open("a", encoding="utf-8")
        except OSError as error:
            raise _store_error(error, self.folder) from error


def _run_file(recipe: str, target: str) -> str:
    """A name without folders: `layers%conv3x3@cortex-m4.json`."""
    return f"{recipe.replace('/', '%')}@{target}.json"


def _files_below(folder: Path) -> Iterator[str]:
    """Paths of all files below a folder, relative to it, with `/`."""
    for parent, _, names in os.walk(folder):
        for name in names:
            yield Path(parent, name).relative_to(folder).as_posix()


def _seal(folder: Path) -> dict[str, dict[str, Any]]:
    """Make files read-only and list them with sha256 and size. Raises StoreError for a link: it is no content."""
    listed = {}
    for name in sorted(_files_below(folder)):
        path = folder / name
        if path.is_symlink() or not path.is_file():
            raise StoreError(f"an artifact holds files only; {name} is something else")
        path.chmod(path.stat().st_mode & 0o555)
        listed[name] = {"sha256": hash_file(path), "size": path.stat().st_size}
    return listed


def _log_line(log: TextIO, line: str) -> None:
    log.write(line.rstrip("\n") + "\n")
    log.flush()


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(folder: Path) -> None:
    # A compiler that outlived its run may still write there; what stays is removed by a later run.
    shutil.rmtree(folder, ignore_errors=True)


def _store_error(error: OSError, folder: Path) -> StoreError:
    if is_disk_full(error):
        return DiskFullError(
            f"no space left for the artifact store {folder}",
            hint="free some, or `doit gc --days 7`, or set FIRMLINE_STORE to another disk; what is finished is kept",
        )
    message = f"the artifact store {folder} cannot be used: {error.strerror}"
    return StoreError(message, hint="set FIRMLINE_STORE to a folder that can be written")
