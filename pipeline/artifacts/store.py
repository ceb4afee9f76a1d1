"""The artifact store: what an action left, addressed by its key, whole or not there at all.

    <store>/artifacts/ab/abcd…/manifest.json    what it is, what it depends on, its files with sha256 and size
                               files/           what the stage wrote, read-only
                               log.txt          what the stage logged
           /building/abcd….<n>/                 an artifact being made by the holder of the key's lock; its read/ has
                                                copies of the external files that the stage reads
           /locks/abcd….lock                    one per key: two runs do not make the same artifact twice
           /locks/store.lock                    shared while a run lasts, exclusive while the store is trimmed
           /runs/<recipe>@<target>.json         what this recipe had last (pipeline.artifacts.last_runs)
           /digests.json, /tools.json           caches: they save time and may be deleted

An artifact is written under `building/`, every file and folder of it is fsynced, and then it is renamed. The kernel
drops locks of a dead process, so a folder in `building/` whose lock is free was left by one that was killed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from pipeline.artifacts.digest import DigestCache, digest_of, hash_file
from pipeline.artifacts.folders import fsync, make_folder, remove
from pipeline.artifacts.last_runs import LastRuns
from pipeline.artifacts.manifest import FORMAT, LOG, MANIFEST, MOST_BYTES, SHARED, content_of, parsed_manifest
from pipeline.errors import DiskFullError, StoreError
from pipeline.process.interruption import unfinished
from stages.system.asides import clear_asides
from stages.system.below import OutsideError, below
from stages.system.regular_file import open_regular, read_regular
from stages.system.system_limits import is_disk_full, system_limit

# Beside `files` while an artifact is made: what is read, and no part of it.
READ = "read"
FILES = "files"
# Bytes of a log that is shown.
MOST_LOG = 16 << 20


_STORE = "store"
_FOLDERS = ("artifacts", "building", "locks", "runs")


_ANOTHER = "set FIRMLINE_STORE to a folder that can be written"


@dataclass(frozen=True)
class Artifact:
    """A verified artifact: `files` is the folder that consumers read; `manifest` is its manifest.json."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def files(self) -> Path:
        """The folder of what the stage wrote."""
        return self.folder / FILES

    @cached_property
    def content(self) -> str:
        """A digest of the names and bytes of the files, whoever made them, and why."""
        return content_of(self.manifest)

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
        with contextlib.suppress(OSError), open_regular(self.folder / LOG) as stream:
            return stream.read(MOST_LOG).decode(errors="replace")
        return ""


class Store:
    """A folder of artifacts. Processes and threads may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Why nothing can be made, '' when it can. What is there can be read all the same.
        self._closed = ""
        try:
            for name in _FOLDERS:
                make_folder(below(folder, name))
            self._closed = _why_not_written(folder)
        except OSError as error:
            if isinstance(error, OutsideError) or not all((folder / name).is_dir() for name in _FOLDERS):
                raise _store_error(error, folder) from None
            self._closed = error.strerror or str(error)
        self.digests = DigestCache(folder / "digests.json")
        self.runs = LastRuns(folder / "runs")

    def path(self, key: str) -> Path:
        """Where the artifact of a key is, or would be. Raises OSError where a link leads out of the store."""
        return below(self.folder, "artifacts", key[:2], key)

    def find(self, key: str) -> Artifact | None:
        """The artifact of a key if it is there and every file is as it was written, else None.

        A file whose times, size and inode are as remembered is taken as unchanged; any other is hashed.
        """
        manifest = self.manifest(key)
        if manifest is None:
            return None
        folder = self.path(key)
        listed: dict[str, dict[str, Any]] = manifest["files"]
        try:
            if set(_files_below(folder / FILES)) != listed.keys():
                return None
            if any(self.digests.digest(folder / FILES / name) != entry["sha256"] for name, entry in listed.items()):
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
        """The manifest of a key without a look at the files; None when there is none or it was altered."""
        try:
            text = read_regular(self.path(key) / MANIFEST, MOST_BYTES)
        except OSError:
            return None
        return parsed_manifest(text, key)

    def make(
        self,
        ingredients: Mapping[str, Any],
        write: Callable[[Path, Callable[[str], None]], None],
        *,
        recipe: str,
        force: bool = False,
        shared: bool = True,
        waiting: Callable[[], None] = lambda: None,
    ) -> tuple[Artifact, bool]:
        """The artifact of these ingredients, and whether it was there already.

        `write(folder, log)` fills the folder; it is called only when no other process made the artifact meanwhile, or
        when `force`. `waiting` is called before this process waits for another one that makes it. One that is not
        `shared` says so, for whoever sends artifacts on. Whatever `write` raises passes through, except that an OSError
        counts as the store's; the store is then as before. Raises StoreError, DiskFullError.
        """
        key = digest_of(ingredients)
        if self._closed:
            store = f"the artifact store {self.folder} cannot be written ({self._closed}); {_ANOTHER}"
            raise StoreError(f"{ingredients['stage']} has to run, but {store}")
        with self.locked(key, waiting):
            found = None if force else self.find(key)
            if found is not None:
                return found, True
            with self._building(key) as building:
                started = time.monotonic()
                with (building / LOG).open("w", encoding="utf-8") as log:
                    write(building / FILES, lambda line: _log_line(log, line))
                manifest = {
                    "format": FORMAT,
                    "key": key,
                    "stage": ingredients["stage"],
                    "recipe": recipe,
                    "created": datetime.now(UTC).isoformat(timespec="seconds"),
                    "seconds": round(time.monotonic() - started, 3),
                    "ingredients": dict(ingredients),
                    "files": _seal(building / FILES),
                    **({} if shared else {SHARED: False}),
                }
                remove(building / READ)
                self._publish(building, key, manifest)
        return Artifact(self.path(key), manifest), False

    def receive(self, key: str, bring: Callable[[Path], dict[str, Any]]) -> Artifact | None:
        """The artifact of a key that was made elsewhere.

        `bring(folder)` fills files/ and log.txt, and gives the manifest. What it raises passes through, except that an
        OSError counts as the store's; it is not called where another process left the artifact meanwhile. None where
        the store cannot be written. Raises StoreError, DiskFullError.
        """
        if self._closed:
            return None
        with self.locked(key):
            found = self.find(key)
            if found is not None:
                return found
            with self._building(key) as building:
                manifest = bring(building)
                sealed = {name: one["sha256"] for name, one in _seal(building / FILES).items()}
                if sealed != {name: one["sha256"] for name, one in manifest["files"].items()}:
                    raise StoreError("what was brought is not what its manifest lists")
                self._publish(building, key, manifest)
        return Artifact(self.path(key), manifest)

    @contextlib.contextmanager
    def _building(self, key: str) -> Iterator[Path]:
        """A folder with an empty `files`, for the holder of the key's lock; nothing is left of it."""
        # A fresh name: a compiler that outlived a killed run may still write into that run's folder.
        building = below(self.folder, "building", f"{key}.{time.time_ns()}")
        with unfinished(building):
            try:
                (building / FILES).mkdir(parents=True)
                yield building
            except OSError as error:
                raise _store_error(error, self.folder) from error
            finally:
                remove(building)

    def _publish(self, building: Path, key: str, manifest: dict[str, Any]) -> None:
        with (building / MANIFEST).open("w", encoding="utf-8") as stream:
            json.dump(manifest, stream, indent=1, sort_keys=True)
        for folder, _, names in os.walk(building, topdown=False):
            for name in names:
                fsync(Path(folder, name))
            fsync(Path(folder))
        # A link in an artifact's place is damage, and may lead anywhere: the link goes, and nothing that it leads to.
        for place in (self.folder / "artifacts" / key[:2], self.folder / "artifacts" / key[:2] / key):
            if place.is_symlink():
                place.unlink()
        place = self.path(key)
        make_folder(place.parent)
        if place.exists() or place.is_symlink():
            # Damaged, or made again by force: moved away first, since a folder cannot replace one that is not empty.
            damaged = building.with_name(f"{building.name}.replaced")
            place.rename(damaged)
            building.rename(place)
            remove(damaged)
        else:
            building.rename(place)
        fsync(place.parent)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Keeps the store from being trimmed while a run lasts; on the way in, clears what killed runs left."""
        if self._closed:
            # Nothing is removed from it either: nobody else's run can write it, or `gc` is that user's affair.
            yield
            return
        try:
            stream = self._lock_file(_STORE)
            fcntl.flock(stream, fcntl.LOCK_SH)
            self._clear_abandoned()
        except OSError as error:
            raise _store_error(error, self.folder) from error
        with stream:
            try:
                yield
            finally:
                self.digests.save()

    def trim(self, *, days: float | None = None, size: int | None = None) -> tuple[int, int]:
        """Delete artifacts older than `days`, then the oldest until at most `size` bytes remain.

        Returns how many artifacts and bytes went. Age counts from when an artifact was made or last found by a run.
        Raises StoreError when a run is using the store, or it cannot be written.
        """
        with self._lock_file(_STORE) as stream:
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
            below(self.folder, folder.parent)
            bytes_ = sum(path.lstat().st_size for path in (folder, *folder.rglob("*")) if not path.is_dir())
            found.append((folder.lstat().st_mtime, bytes_, folder))
        found.sort()
        total = sum(bytes_ for _, bytes_, _ in found)
        count = freed = 0
        for used, bytes_, folder in found:
            too_old = days is not None and used < time.time() - days * 86400
            if too_old or (size is not None and total - freed > size):
                # Removed below, or by the next run: a kill in the middle leaves no artifact that is half deleted.
                folder.rename(self.folder / "building" / f"{folder.name}.trimmed")
                count, freed = count + 1, freed + bytes_
        self._clear_abandoned()
        for lock in (self.folder / "locks").glob("*.lock"):
            if lock.name != f"{_STORE}.lock":
                remove(lock)
        return count, freed

    @contextlib.contextmanager
    def locked(self, name: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Holds the lock `name` (a key, or a recipe's build folder); calls `waiting` first if another holds it.

        In a store that cannot be written there is none.
        """
        if self._closed:
            yield
            return
        with self._lock_file(name) as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def _clear_abandoned(self) -> None:
        """Remove what killed runs left: artifacts they were making, and files they were writing aside."""
        for folder in (self.folder / "building").iterdir():
            key = folder.name.partition(".")[0]
            with self._lock_file(key) as stream, contextlib.suppress(BlockingIOError):
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(folder)
        for place in (self.folder, self.folder / "runs"):
            clear_asides(place)

    def _lock_file(self, name: str) -> TextIO:
        try:
            path = below(self.folder, "locks") / f"{name}.lock"
            if name != _STORE and path.name == f"{name}.lock" and (path.is_dir() or path.is_symlink()):
                # Nobody holds it: a lock is a file.
                remove(path)
            below(self.folder, "locks", f"{name}.lock")
            return path.open("a", encoding="utf-8")
        except OSError as error:
            raise _store_error(error, self.folder) from error


def _files_below(folder: Path) -> Iterator[str]:
    """Paths of all files and links below a folder, relative to it, with `/`."""
    for parent, folders, names in os.walk(folder):
        for name in (*names, *(one for one in folders if Path(parent, one).is_symlink())):
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


def _why_not_written(folder: Path) -> str:
    """Why no file can be made in the store, '' when one can."""
    for name in _FOLDERS:
        if not os.access(folder / name, os.W_OK | os.X_OK):
            read_only = os.statvfs(folder / name).f_flag & os.ST_RDONLY
            return os.strerror(errno.EROFS if read_only else errno.EACCES)
    return ""


def _store_error(error: OSError, folder: Path) -> StoreError:
    if is_disk_full(error):
        return DiskFullError(
            f"no space left for the artifact store {folder}",
            hint="free some, or `doit gc --days 7`, or set FIRMLINE_STORE to another disk; what is finished is kept",
        )
    limit = system_limit(error)
    if limit is not None:
        return StoreError(f"the artifact store {folder} cannot be used: {limit[0]}", hint=limit[1])
    return StoreError(f"the artifact store {folder} cannot be used: {error.strerror}", hint=_ANOTHER)
