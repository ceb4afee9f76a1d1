"""The remote store of a run: a second place to find artifacts, and to send new ones.

    ac/<key>        an artifact's files with digests: manifest.json, log.txt, files/… (pipeline.remote.entry)
    cas/<sha256>    content of a file

An entry is written last, after all its blobs; the server may delete blobs. Each blob's digest is verified when it is
read. Missing or altered artifacts are made here and sent again. No failure of a remote store fails a run.
"""

import errno
import hashlib
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.artifacts.manifest import LOG, MANIFEST, MOST_BYTES, ORIGIN, parsed_manifest
from pipeline.artifacts.store import MOST_LOG, Artifact, Store
from pipeline.errors import PipelineError
from pipeline.remote.entry import MOST_FILES, Blob, agrees, files_of, read_entry, write_entry
from pipeline.remote.health import Health, health_of
from pipeline.remote.settings import RemoteSettings
from pipeline.remote.traffic import Traffic
from pipeline.remote.transport import SECONDS, RemoteError, Transport
from stages.support.system.path_below import path_below

# Threads that fetch an artifact's files, and that send artifacts.
_FETCHING, _SENDING = 8, 4
# The most bytes of an entry.
_MOST_ENTRY = 4 << 20
# Bytes per second that an object needs after its first SECONDS.
_SLOWEST = 10_000
_PROBE = b"firmline\n"
# Outcomes of sending or querying an artifact.
SENT, THERE, LACKING, GONE, FAILED = "sent", "there", "lacking", "gone", "failed"
# Errors of invalid file names: too long, or both a file and a folder.
_NO_FILES = {errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ}


class _Altered(Exception):
    """An object does not match its name or is invalid; the message is its name."""


class _Incomplete(Exception):
    """An entry exists, but not all of its blobs."""


class Remote:
    """A remote store beside `store`. Thread-safe; methods raise only errors of `store`."""

    def __init__(
        self,
        settings: RemoteSettings,
        store: Store,
        open_transport: Callable[[RemoteSettings], Transport],
        health: Health | None = None,
    ) -> None:
        self.settings = settings
        self.traffic = Traffic()
        self._store = store
        self._open_transport = open_transport
        self._health = health or health_of(settings)
        self._lock = threading.Lock()
        # Running transfers with the keys of their artifacts.
        self._sending: dict[Future[str], str] = {}
        # Keys of damaged artifacts: incomplete (False) or altered (True).
        self._damaged: dict[str, bool] = {}

    @cached_property
    def _opened(self) -> Transport:
        return self._open_transport(self.settings)

    @property
    def _transport(self) -> Transport:
        """The transport. Raises RemoteError if it is disabled or cannot be opened."""
        self._health.check()
        return self._opened

    @cached_property
    def _fetchers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_FETCHING, "firmline-fetch")

    @cached_property
    def _senders(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_SENDING, "firmline-send")

    def manifest(self, key: str) -> dict[str, Any] | None:
        """Return an artifact's manifest, None if it is missing; fetches no other file."""
        with self._reading(key) as reads:
            entry = self._entry(key) if reads else None
            return None if entry is None else entry[0]
        return None

    def manifest_and_log(self, key: str) -> tuple[dict[str, Any], str] | None:
        """Return an artifact's manifest and log, None if it is missing."""
        with self._reading(key) as reads:
            entry = self._entry(key) if reads else None
            listed = None if entry is None else entry[1].get(LOG)
            if entry is None or listed is None:
                return None
            # A longer log is not shown.
            text = b"" if listed.size > MOST_LOG else self._text(f"cas/{listed.sha256}", MOST_LOG, listed)
            if text is None:
                raise _Incomplete
            return entry[0], text.decode(errors="replace")
        return None

    def fetch(self, key: str) -> Artifact | None:
        """Fetch an artifact into the store; None if it is missing, incomplete or altered."""
        with self._reading(key) as reads:
            entry = self._entry(key) if reads else None
            if entry is None:
                return None
            folders: list[Path] = []

            def fetch_into(folder: Path) -> dict[str, Any]:
                folders.append(folder)
                return self._fetch_files(folder, *entry)

            artifact = self._store.receive(key, fetch_into)
            self._damaged.pop(key, None)
            if artifact is not None and folders:
                self._count("fetched", sum(blob.size for blob in entry[1].values()))
            return artifact
        return None

    def send(self, artifact: Artifact, *, look: bool = False) -> Future[str]:
        """Start sending an artifact unless it exists. The result is SENT, THERE, GONE or FAILED.

        An artifact with an entry exists; with `look`, its blobs are checked too.
        """
        with self._lock:
            sending = self._senders.submit(self._send, artifact, look)
            self._sending[sending] = artifact.key
        return sending

    def send_again(self, artifact: Artifact) -> Future[str]:
        """Send an artifact even if it exists, since somebody could not read it."""
        self._damaged[artifact.key] = True
        return self.send(artifact)

    @property
    def is_disabled(self) -> bool:
        """Whether it is not read any more."""
        return not self._health.reads

    def fetch_error(self, key: str) -> str:
        """Return why another attempt to fetch an artifact will fail; '' if it may succeed."""
        shown = f"the remote store {self.settings.shown}"
        if self.is_disabled:
            return f"{shown} is disabled after failures"
        if key in self._damaged:
            return f"{shown} has an altered copy" if self._damaged[key] else f"{shown} has lost a part of it"
        return ""

    def query(self, key: str) -> Future[str]:
        """Start checking for a complete artifact. The result is THERE, LACKING or FAILED."""

        def ask() -> str:
            if not self._health.reads:
                return FAILED
            try:
                return THERE if self._is_complete(key) else LACKING
            except Exception as error:
                self._health.failed(self._failure(error))
                return FAILED

        return self._senders.submit(ask)

    def flush(self, waiting: Callable[[int], None] = lambda count: None, keys: Container[str] | None = None) -> None:
        """Wait until all artifacts, or those of `keys`, are sent.

        `waiting` is called with the number of artifacts still to send.
        """
        while True:
            with self._lock:
                transfers = [transfer for transfer, key in self._sending.items() if keys is None or key in keys]
            if not transfers:
                return
            count = sum(not transfer.done() for transfer in transfers)
            if count:
                waiting(count)
            # Remove it when it is done: other threads may wait for it too.
            try:
                transfers[0].result()
            finally:
                with self._lock:
                    self._sending.pop(transfers[0], None)

    @property
    def use(self) -> str:
        """How it is used, in words."""
        return "can be read (read-only here)" if self.settings.read_only else "can be read and written"

    def problem(self, *, reads_only: bool = False) -> str:
        """Return why it cannot be read, or written unless it is read-only; '' if it works.

        Writes a small blob for the test.
        """
        if self.settings.wrong:
            return self.settings.wrong
        name = f"cas/{hashlib.sha256(_PROBE).hexdigest()}"
        try:
            if self._transport.has(f"ac/{secrets.token_hex(32)}"):
                return "claims to have an object with a random name: it is not a store"
        except Exception as error:
            return f"cannot be read: {self._failure(error)}"
        if self.settings.read_only or reads_only:
            return ""
        try:
            self._transport.write(name, _PROBE)
            back = self._text(name, len(_PROBE))
        except _Altered:
            back = None
        except Exception as error:
            return f"cannot be written: {self._failure(error)}"
        return "" if back == _PROBE else "does not return what was written"

    def _failure(self, error: Exception) -> RemoteError:
        """Return a transport's exception as RemoteError, without credentials."""
        if isinstance(error, RemoteError):
            return type(error)(self.settings.redacted(str(error)))
        lines = str(error).strip().splitlines()
        return RemoteError(self.settings.redacted(": ".join([type(error).__name__, *lines[:1]])))

    def close(self) -> None:
        """Stop sending."""
        for name in ("_fetchers", "_senders"):
            if name in vars(self):
                vars(self).pop(name).shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def _reading(self, key: str) -> Iterator[bool]:
        """Yield whether to read; failures in the context are noted and printed."""
        try:
            yield self._health.reads
        except _Incomplete:
            self._damaged[key] = False
        except _Altered as error:
            self._damaged[key] = True
            is_entry = str(error).startswith("ac/")
            what = "is not an artifact entry" if is_entry else "does not match its SHA-256"
            text = f"{error} in the remote store {self.settings.shown} {what}; the artifact is made here"
            self._health.warn("altered", text)
        except PipelineError:
            # An error of the local store.
            raise
        except Exception as error:
            self._health.failed(self._failure(error))

    def _entry(self, key: str) -> tuple[dict[str, Any], dict[str, Blob]] | None:
        """Return an artifact's manifest and files, None if it is missing."""
        data = self._text(f"ac/{key}", _MOST_ENTRY)
        self._health.worked()
        if data is None:
            return None
        try:
            files = read_entry(data)
        except ValueError:
            raise _Altered(f"ac/{key}") from None
        listed = files.get(MANIFEST)
        if listed is None:
            raise _Altered(f"ac/{key}")
        text = self._text(f"cas/{listed.sha256}", MOST_BYTES, listed)
        if text is None:
            raise _Incomplete
        manifest = parsed_manifest(text, key)
        if manifest is None or not agrees(manifest, files):
            raise _Altered(f"ac/{key}")
        return {**manifest, ORIGIN: self.settings.shown}, files

    def _fetch_files(self, folder: Path, manifest: dict[str, Any], files: dict[str, Blob]) -> dict[str, Any]:
        """Fetch an artifact's files into a folder. An OSError is one of the disk."""
        places = [(path_below(folder, name), blob) for name, blob in files.items() if name != MANIFEST]
        size, free = sum(blob.size for _, blob in places), shutil.disk_usage(folder).free
        if size > free:
            raise RemoteError(f"an artifact of {size:,} bytes does not fit on the disk ({free:,} bytes free)")
        for parent in {place.parent for place, _ in places}:
            with _reject_invalid_names(manifest):
                parent.mkdir(parents=True, exist_ok=True)
        jobs = [self._fetchers.submit(self._file, place, blob) for place, blob in places]
        wait(jobs, return_when=FIRST_EXCEPTION)
        for job in jobs:
            job.cancel()
        wait(jobs)
        for job in jobs:
            if not job.cancelled():
                with _reject_invalid_names(manifest):
                    job.result()
        return manifest

    def _file(self, place: Path, blob: Blob) -> None:
        with place.open("wb") as stream:
            if not self._read(f"cas/{blob.sha256}", stream.write, blob.size, blob):
                raise _Incomplete
        place.chmod(0o755 if blob.executable else 0o644)

    def _text(self, name: str, most: int, blob: Blob | None = None) -> bytes | None:
        """Return an object's bytes; None if it is missing. Raises _Altered for more than `most`."""
        if blob is not None and blob.size > most:
            raise _Altered(name)
        parts: list[bytes] = []
        exists = self._read(name, parts.append, most if blob is None else blob.size, blob)
        return b"".join(parts) if exists else None

    def _read(self, name: str, take: Callable[[bytes], object], most: int, blob: Blob | None) -> bool:
        """Pass an object's bytes to `take`, verified against `blob`; False if it is missing.

        Raises _Altered for more than `most` bytes, RemoteError for an object that comes too slowly.
        """
        digest, size, began = hashlib.sha256(), 0, time.monotonic()

        def checked(block: bytes) -> None:
            nonlocal size
            size += len(block)
            if size > most:
                raise _Altered(name)
            if time.monotonic() - began > SECONDS + size / _SLOWEST:
                raise RemoteError(f"slower than {_SLOWEST:,} bytes per second")
            digest.update(block)
            take(block)

        if not self._transport.read(name, checked):
            return False
        if blob is not None and (digest.hexdigest(), size) != (blob.sha256, blob.size):
            raise _Altered(name)
        return True

    def _is_complete(self, key: str) -> bool:
        """Return whether the entry and all blobs exist with their sizes; notes damage."""
        try:
            entry = self._entry(key)
        except _Altered:
            self._damaged[key] = True
            return False
        except _Incomplete:
            self._damaged[key] = False
            return False
        if entry is None:
            return False
        blobs = {blob.sha256: blob for blob in entry[1].values()}.values()
        if not all(self._transport.has(f"cas/{blob.sha256}", blob.size) for blob in blobs):
            self._damaged.setdefault(key, False)
        return key not in self._damaged

    def _send(self, artifact: Artifact, look: bool) -> str:
        if not self._health.writes:
            return FAILED
        key, moved = artifact.key, 0
        try:
            places = files_of(artifact)
            exists = self._is_complete(key) if look else self._transport.has(f"ac/{key}")
            if exists and key not in self._damaged:
                return THERE
            entry = write_entry(places)
            if len(places) > MOST_FILES or len(entry) > _MOST_ENTRY or places[MANIFEST].size > MOST_BYTES:
                what = f"{len(places):,} files, more than an entry may have"
                self._health.warn("large", f"{artifact.manifest['stage']} made {what}; the artifact is not sent")
                return FAILED
            for blob, place in {blob.sha256: (blob, artifact.folder / name) for name, blob in places.items()}.values():
                name = f"cas/{blob.sha256}"
                if self._damaged.get(key) or not self._transport.has(name, blob.size):
                    self._transport.write(name, place)
                    moved += blob.size
            self._transport.write(f"ac/{key}", entry)
        except OSError:
            # It was deleted meanwhile: the next run that needs it makes and sends it.
            return GONE
        except Exception as error:
            self._health.failed(self._failure(error), writing=True)
            return FAILED
        self._health.worked()
        self._damaged.pop(key, None)
        self._count("sent", moved)
        return SENT

    def _count(self, what: str, size: int) -> None:
        with self._lock:
            for name, more in ((what, 1), (f"{what}_bytes", size)):
                setattr(self.traffic, name, getattr(self.traffic, name) + more)


@contextmanager
def _reject_invalid_names(manifest: Mapping[str, Any]) -> Iterator[None]:
    """Raise _Altered for file names that a disk rejects: no run wrote such an artifact."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_FILES:
            raise _Altered(f"ac/{manifest['key']}") from error
        raise
