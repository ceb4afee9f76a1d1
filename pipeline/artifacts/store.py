"""The artifact store: files of actions, by key. An artifact is complete or absent.

    <store>/artifacts/ab/abcd…/manifest.json    ingredients, and files with sha256 and size
                               files/           files of the stage, read-only
                               log.txt          log of the stage
           /building/abcd….<n>/                 an artifact in progress, owned by the holder of the key's lock; its
                                                read/ has copies of the external files that the stage reads
           /locks/abcd….lock                    one per key: two runs do not make the same artifact twice
           /locks/store.lock                    shared by runs, exclusive while artifacts are deleted
           /runs/<recipe>@<target>.json         the recipe's last run (pipeline.artifacts.last_runs)
           /digests.json, /tools.json           caches that may be deleted

An artifact is written to `building/`, all its files and folders are fsynced, then it is renamed. The kernel releases
the locks of a dead process, so a folder in `building/` without a lock belongs to a killed process.
"""

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
from pipeline.process.interruption import removed_on_interruption
from stages.support.system.atomic_write import remove_stale_files
from stages.support.system.path_below import OutsideError, path_below
from stages.support.system.regular_file import open_regular, read_regular
from stages.support.system.system_limits import is_disk_full, system_limit

# The folder of external files while an artifact is made; not part of it.
READ = "read"
FILES = "files"
# Bytes of a log that is shown.
MOST_LOG = 16 << 20


_STORE = "store"
_FOLDERS = ("artifacts", "building", "locks", "runs")


_ANOTHER = "set FIRMLINE_STORE to a folder that can be written"


@dataclass(frozen=True)
class Artifact:
    """A verified artifact: `files` is the folder for consumers, `manifest` its manifest.json."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def files(self) -> Path:
        """The folder of the stage's files."""
        return self.folder / FILES

    @cached_property
    def content(self) -> str:
        """A digest of names and bytes of the files, independent of the stage."""
        return content_of(self.manifest)

    @property
    def key(self) -> str:
        """The key of the action that made it."""
        return str(self.manifest["key"])

    @property
    def seconds(self) -> float:
        """The duration of the stage's run."""
        return float(self.manifest["seconds"])

    @property
    def log(self) -> str:
        """The log of the stage's run."""
        with contextlib.suppress(OSError), open_regular(self.folder / LOG) as stream:
            return stream.read(MOST_LOG).decode(errors="replace")
        return ""


class Store:
    """A folder of artifacts. Processes and threads may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Why the store cannot be written, '' if it can. It can be read in any case.
        self._read_only_reason = ""
        try:
            for name in _FOLDERS:
                make_folder(path_below(folder, name))
            self._read_only_reason = _read_only_cause(folder)
        except OSError as error:
            if isinstance(error, OutsideError) or not all((folder / name).is_dir() for name in _FOLDERS):
                raise _store_error(error, folder) from None
            self._read_only_reason = error.strerror or str(error)
        self.digests = DigestCache(folder / "digests.json")
        self.runs = LastRuns(folder / "runs")

    def path(self, key: str) -> Path:
        """Return the path of a key's artifact. Raises OSError if a link leads out of the store."""
        return path_below(self.folder, "artifacts", key[:2], key)

    def find(self, key: str) -> Artifact | None:
        """Return a key's artifact if it exists and all files are unchanged, else None.

        A file is unchanged if times, size and inode are those of the cache; otherwise it is hashed.
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
        """Note the day of the last use, from which `trim` computes the age."""
        with contextlib.suppress(OSError):
            if artifact.folder.stat().st_mtime < time.time() - 86400:
                os.utime(artifact.folder)

    def manifest(self, key: str) -> dict[str, Any] | None:
        """Return a key's manifest without checking the files; None if it is missing or altered."""
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
        """Return the artifact of these ingredients, and whether it existed before.

        write    fills the folder: write(folder, log); called with `force`, or unless another process has made the
                 artifact
        shared   False: note in the manifest that the artifact must not be sent to other machines
        waiting  called before waiting for another process that makes the artifact

        Exceptions of `write` are passed on and leave the store unchanged. An OSError of `write` becomes a StoreError.
        Raises StoreError, DiskFullError.
        """
        key = digest_of(ingredients)
        if self._read_only_reason:
            store = f"the artifact store {self.folder} cannot be written ({self._read_only_reason}); {_ANOTHER}"
            raise StoreError(f"{ingredients['stage']} has to run, but {store}")
        with self.locked(key, waiting):
            artifact = None if force else self.find(key)
            if artifact is not None:
                return artifact, True
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

    def receive(self, key: str, fetch: Callable[[Path], dict[str, Any]]) -> Artifact | None:
        """Store the artifact of a key that was made elsewhere; None if the store cannot be written.

        `fetch(folder)` fills files/ and log.txt and returns the manifest; it is not called if another process has
        stored the artifact meanwhile. Its exceptions pass through, but an OSError becomes a StoreError. Raises
        StoreError, DiskFullError.
        """
        if self._read_only_reason:
            return None
        with self.locked(key):
            artifact = self.find(key)
            if artifact is not None:
                return artifact
            with self._building(key) as building:
                manifest = fetch(building)
                sealed = {name: file["sha256"] for name, file in _seal(building / FILES).items()}
                if sealed != {name: file["sha256"] for name, file in manifest["files"].items()}:
                    raise StoreError("the fetched files differ from the manifest")
                self._publish(building, key, manifest)
        return Artifact(self.path(key), manifest)

    @contextlib.contextmanager
    def _building(self, key: str) -> Iterator[Path]:
        """Yield a folder with an empty `files`, and remove it afterwards.

        Only the holder of the key's lock may call this.
        """
        # A new name: a compiler that outlived a killed run may still write to that run's folder.
        building = path_below(self.folder, "building", f"{key}.{time.time_ns()}")
        with removed_on_interruption(building):
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
        # A link in place of an artifact is damage: remove the link, not its destination.
        for place in (self.folder / "artifacts" / key[:2], self.folder / "artifacts" / key[:2] / key):
            if place.is_symlink():
                place.unlink()
        place = self.path(key)
        make_folder(place.parent)
        if place.exists() or place.is_symlink():
            # Damaged, or made again by force. Move it away: a rename cannot replace a folder with files.
            damaged = building.with_name(f"{building.name}.replaced")
            place.rename(damaged)
            building.rename(place)
            remove(damaged)
        else:
            building.rename(place)
        fsync(place.parent)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the store from being trimmed during a run; first remove remains of killed runs."""
        if self._read_only_reason:
            # Nothing is removed from a read-only store.
            yield
            return
        try:
            stream = self._lock_file(_STORE)
            fcntl.flock(stream, fcntl.LOCK_SH)
            self._remove_abandoned()
        except OSError as error:
            raise _store_error(error, self.folder) from error
        with stream:
            try:
                yield
            finally:
                self.digests.save()

    def trim(self, *, days: float | None = None, size: int | None = None) -> tuple[int, int]:
        """Delete artifacts older than `days`, then the oldest until at most `size` bytes remain.

        Returns numbers of deleted artifacts and bytes. The age counts from creation or last use.
        Raises StoreError if a run uses the store, or it cannot be written.
        """
        with self._lock_file(_STORE) as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                message = f"the store {self.folder} is in use by a run"
                raise StoreError(message, hint="try again when the run has ended") from None
            try:
                return self._trim(days, size)
            except OSError as error:
                raise _store_error(error, self.folder) from error

    def _trim(self, days: float | None, size: int | None) -> tuple[int, int]:
        artifacts = []
        for folder in (self.folder / "artifacts").glob("*/*"):
            path_below(self.folder, folder.parent)
            bytes_ = sum(path.lstat().st_size for path in (folder, *folder.rglob("*")) if not path.is_dir())
            artifacts.append((folder.lstat().st_mtime, bytes_, folder))
        artifacts.sort()
        total = sum(bytes_ for _, bytes_, _ in artifacts)
        count = freed = 0
        for used, bytes_, folder in artifacts:
            too_old = days is not None and used < time.time() - days * 86400
            if too_old or (size is not None and total - freed > size):
                # Rename, then delete below or in the next run: a kill leaves no partial artifact.
                folder.rename(self.folder / "building" / f"{folder.name}.trimmed")
                count, freed = count + 1, freed + bytes_
        self._remove_abandoned()
        for lock in (self.folder / "locks").glob("*.lock"):
            if lock.name != f"{_STORE}.lock":
                remove(lock)
        return count, freed

    @contextlib.contextmanager
    def locked(self, name: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Hold the lock `name` (a key or build folder); first call `waiting` if it is not free.

        A read-only store has no locks.
        """
        if self._read_only_reason:
            yield
            return
        with self._lock_file(name) as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def _remove_abandoned(self) -> None:
        """Remove artifacts in progress and temporary files of killed runs."""
        for folder in (self.folder / "building").iterdir():
            key = folder.name.partition(".")[0]
            with self._lock_file(key) as stream, contextlib.suppress(BlockingIOError):
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(folder)
        for place in (self.folder, self.folder / "runs"):
            remove_stale_files(place)

    def _lock_file(self, name: str) -> TextIO:
        try:
            path = path_below(self.folder, "locks") / f"{name}.lock"
            if name != _STORE and path.name == f"{name}.lock" and (path.is_dir() or path.is_symlink()):
                # A lock is a file: a folder or link is not held.
                remove(path)
            path_below(self.folder, "locks", f"{name}.lock")
            return path.open("a", encoding="utf-8")
        except OSError as error:
            raise _store_error(error, self.folder) from error


def _files_below(folder: Path) -> Iterator[str]:
    """Yield the paths of all files and links below a folder, relative to it, with `/`."""
    for parent, folders, names in os.walk(folder):
        for name in (*names, *(entry for entry in folders if Path(parent, entry).is_symlink())):
            yield Path(parent, name).relative_to(folder).as_posix()


def _seal(folder: Path) -> dict[str, dict[str, Any]]:
    """Make files read-only and return their SHA-256 and size. Raises StoreError for a link."""
    listed = {}
    for name in sorted(_files_below(folder)):
        path = folder / name
        if path.is_symlink() or not path.is_file():
            raise StoreError(f"{name}: an artifact may only have regular files")
        path.chmod(path.stat().st_mode & 0o555)
        listed[name] = {"sha256": hash_file(path), "size": path.stat().st_size}
    return listed


def _log_line(log: TextIO, line: str) -> None:
    log.write(line.rstrip("\n") + "\n")
    log.flush()


def _read_only_cause(folder: Path) -> str:
    """Return why the store cannot be written, '' if it can."""
    for name in _FOLDERS:
        if not os.access(folder / name, os.W_OK | os.X_OK):
            read_only = os.statvfs(folder / name).f_flag & os.ST_RDONLY
            return os.strerror(errno.EROFS if read_only else errno.EACCES)
    return ""


def _store_error(error: OSError, folder: Path) -> StoreError:
    if is_disk_full(error):
        return DiskFullError(
            f"no space left for the artifact store {folder}",
            hint="free some, run `doit gc days=7`, or set FIRMLINE_STORE to another disk; finished stages are kept",
        )
    limit = system_limit(error)
    if limit is not None:
        return StoreError(f"the artifact store {folder} cannot be used: {limit[0]}", hint=limit[1])
    return StoreError(f"the artifact store {folder} cannot be used: {error.strerror}", hint=_ANOTHER)
