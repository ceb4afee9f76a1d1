"""The remote store of a run: what the store lacks is looked for there, and what is made is sent there.

    ac/<key>        the files of an artifact with their digests: manifest.json, log.txt, files/… (pipeline.remote.entry)
    cas/<sha256>    the bytes of each

Written last, an entry has all its blobs, unless the server forgot some. Every blob is compared with its name when it is
read; what is not there, or is altered, is made here, and sent again. Nothing that a remote store does makes a run fail.
"""

from __future__ import annotations

import errno
import hashlib
import secrets
import shutil
import threading
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
from pipeline.remote.exchange import Bounded
from pipeline.remote.health import Health, health_of
from pipeline.remote.settings import RemoteSettings
from pipeline.remote.tally import Tally
from pipeline.remote.transport import RemoteError, Transport
from stages.support.system.below import below

# An artifact's files are fetched side by side, and artifacts are sent side by side.
_FETCHING, _SENDING = 8, 4
# Bytes that an entry may have.
_MOST_ENTRY = 4 << 20
_PROBE = b"firmline\n"
# What became of an artifact that was to be sent, or was asked for.
SENT, THERE, LACKING, GONE, FAILED = "sent", "there", "lacking", "gone", "failed"
# What a disk says of names that cannot be files of one folder, or of any: too long, or a file and a folder.
_NO_FILES = {errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ}


class _Altered(Exception):
    """A blob has other bytes than its name says, or what an entry's name has is none; the message is the name."""


class _Lost(Exception):
    """There is an entry, but not all of its blobs."""


class Remote:
    """A remote store beside `store`. Methods may be called from several threads, and raise only what `store` raises."""

    def __init__(
        self,
        settings: RemoteSettings,
        store: Store,
        opened: Callable[[RemoteSettings], Transport],
        health: Health | None = None,
    ) -> None:
        self.settings = settings
        self.tally = Tally()
        self._store = store
        self._opened = opened
        self._health = health or health_of(settings)
        self._lock = threading.Lock()
        # What is on its way, with the keys of the artifacts.
        self._sending: dict[Future[str], str] = {}
        # Keys whose artifact is there, but not all of it, or not as it should be (True).
        self._wrong: dict[str, bool] = {}

    @cached_property
    def _transport(self) -> Bounded:
        return Bounded(self._opened(self.settings), self._health.check, self._health.spent)

    @cached_property
    def _fetchers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_FETCHING, "firmline-fetch")

    @cached_property
    def _senders(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_SENDING, "firmline-send")

    def manifest(self, key: str) -> dict[str, Any] | None:
        """The manifest of an artifact that is there; nothing else is fetched."""
        with self._reading(key) as reads:
            found = self._entry(key) if reads else None
            return None if found is None else found[0]
        return None

    def manifest_and_log(self, key: str) -> tuple[dict[str, Any], str] | None:
        """The manifest and the log of an artifact that is there."""
        with self._reading(key) as reads:
            found = self._entry(key) if reads else None
            listed = None if found is None else found[1].get(LOG)
            if found is None or listed is None:
                return None
            # A longer one is not shown.
            text = b"" if listed.size > MOST_LOG else self._text(f"cas/{listed.sha256}", MOST_LOG, listed)
            if text is None:
                raise _Lost
            return found[0], text.decode(errors="replace")
        return None

    def fetch(self, key: str) -> Artifact | None:
        """The artifact of a key, brought into the store; None where there is none, or none as it was written."""
        with self._reading(key) as reads:
            found = self._entry(key) if reads else None
            if found is None:
                return None
            brought: list[Path] = []

            def bring(folder: Path) -> dict[str, Any]:
                brought.append(folder)
                return self._bring(folder, *found)

            artifact = self._store.receive(key, bring)
            self._wrong.pop(key, None)
            if artifact is not None and brought:
                self._count("fetched", sum(blob.size for blob in found[1].values()))
            return artifact
        return None

    def send(self, artifact: Artifact, *, look: bool = False) -> Future[str]:
        """Have an artifact sent, unless it is there; returns at once what will say SENT, THERE, GONE or FAILED.

        One with an entry is there; where it is to `look`, what it has is asked for too.
        """
        with self._lock:
            sending = self._senders.submit(self._send, artifact, look)
            self._sending[sending] = artifact.key
        return sending

    def send_again(self, artifact: Artifact) -> Future[str]:
        """As `send`, over what is there: somebody could not read it."""
        self._wrong[artifact.key] = True
        return self.send(artifact)

    @property
    def given_up(self) -> bool:
        """Whether it is not read any more."""
        return not self._health.reads

    def fetch_error(self, key: str) -> str:
        """Why an artifact that could not be had will not come either when it is asked for again; '': it may."""
        shown = f"the remote store {self.settings.shown}"
        if self.given_up:
            return f"{shown} is given up"
        if key in self._wrong:
            return f"{shown} has it altered" if self._wrong[key] else f"{shown} has lost a part of it"
        return ""

    def asked(self, key: str) -> Future[str]:
        """Ask whether it has all of an artifact; returns at once what will say THERE, LACKING or FAILED."""

        def ask() -> str:
            if not self._health.reads:
                return FAILED
            try:
                return THERE if self._is_whole(key) else LACKING
            except Exception as error:
                self._health.failed(self._failure(error))
                return FAILED

        return self._senders.submit(ask)

    def flush(self, waiting: Callable[[int], None] = lambda left: None, keys: Container[str] | None = None) -> None:
        """Wait until all is sent, or the artifacts of `keys`; `waiting` hears how many are left."""
        while True:
            with self._lock:
                wanted = [one for one, key in self._sending.items() if keys is None or key in keys]
            if not wanted:
                return
            left = sum(not one.done() for one in wanted)
            if left:
                waiting(left)
            # Forgotten when it is done, not before: other threads may wait for it too.
            try:
                wanted[0].result()
            finally:
                with self._lock:
                    self._sending.pop(wanted[0], None)

    @property
    def use(self) -> str:
        """What it is used for."""
        return "can be read; nothing is written to it" if self.settings.read_only else "can be read and written"

    def trouble(self, *, reads_only: bool = False) -> str:
        """Why it cannot be read, or written where that is meant; '' where it can. Writing leaves a small blob there."""
        if self.settings.wrong:
            return self.settings.wrong
        name = f"cas/{hashlib.sha256(_PROBE).hexdigest()}"
        try:
            if self._transport.has(f"ac/{secrets.token_hex(32)}"):
                return "has whatever it is asked for: it is no store"
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
        return "" if back == _PROBE else "does not give back what was written"

    def _failure(self, error: Exception) -> RemoteError:
        """Whatever the way to a remote store raises, without credentials: its libraries raise more than they say."""
        if isinstance(error, RemoteError):
            return type(error)(self.settings.redacted(str(error)))
        lines = str(error).strip().splitlines()
        return RemoteError(self.settings.redacted(": ".join([type(error).__name__, *lines[:1]])))

    def close(self) -> None:
        """Send nothing more."""
        for name in ("_fetchers", "_senders"):
            if name in vars(self):
                vars(self).pop(name).shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def _reading(self, key: str) -> Iterator[bool]:
        """Whether to read; while this lasts, what goes wrong is noted, and warned of."""
        try:
            yield self._health.reads
        except _Lost:
            self._wrong[key] = False
        except _Altered as error:
            self._wrong[key] = True
            is_entry = str(error).startswith("ac/")
            what = "is no entry of an artifact" if is_entry else "has other bytes than its name says"
            text = f"{error} in the remote store {self.settings.shown} {what}; what needs it is made here"
            self._health.warn("altered", text)
        except PipelineError:
            # The machine's own store.
            raise
        except Exception as error:
            self._health.failed(self._failure(error))

    def _entry(self, key: str) -> tuple[dict[str, Any], dict[str, Blob]] | None:
        """An artifact's manifest and files."""
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
            raise _Lost
        manifest = parsed_manifest(text, key)
        if manifest is None or not agrees(manifest, files):
            raise _Altered(f"ac/{key}")
        return {**manifest, ORIGIN: self.settings.shown}, files

    def _bring(self, folder: Path, manifest: dict[str, Any], files: dict[str, Blob]) -> dict[str, Any]:
        """Fill the folder of an artifact. An OSError is the disk's."""
        wanted = [(below(folder, name), blob) for name, blob in files.items() if name != MANIFEST]
        size, free = sum(blob.size for _, blob in wanted), shutil.disk_usage(folder).free
        if size > free:
            raise RemoteError(f"an artifact of {size:,} bytes does not fit on this machine's disk, which has {free:,}")
        for parent in {place.parent for place, _ in wanted}:
            with _names_that_can_be(manifest):
                parent.mkdir(parents=True, exist_ok=True)
        jobs = [self._fetchers.submit(self._file, place, blob) for place, blob in wanted]
        wait(jobs, return_when=FIRST_EXCEPTION)
        for job in jobs:
            job.cancel()
        wait(jobs)
        for job in jobs:
            if not job.cancelled():
                with _names_that_can_be(manifest):
                    job.result()
        return manifest

    def _file(self, place: Path, blob: Blob) -> None:
        with place.open("wb") as stream:
            if not self._read(f"cas/{blob.sha256}", stream.write, blob.size, blob):
                raise _Lost
        place.chmod(0o755 if blob.executable else 0o644)

    def _text(self, name: str, most: int, blob: Blob | None = None) -> bytes | None:
        """The bytes of an object; None where there is none. Raises _Altered for more than `most`."""
        if blob is not None and blob.size > most:
            raise _Altered(name)
        parts: list[bytes] = []
        there = self._read(name, parts.append, most if blob is None else blob.size, blob, is_small=True)
        return b"".join(parts) if there else None

    def _read(
        self, name: str, take: Callable[[bytes], object], most: int, blob: Blob | None, *, is_small: bool = False
    ) -> bool:
        """Hand an object's bytes on, which are those of `blob` where one is given; False where there is none."""
        digest, size = hashlib.sha256(), 0

        def checked(block: bytes) -> None:
            nonlocal size
            size += len(block)
            if size > most:
                raise _Altered(name)
            digest.update(block)
            take(block)

        if not self._transport.read(name, checked, most, is_small=is_small):
            return False
        if blob is not None and (digest.hexdigest(), size) != (blob.sha256, blob.size):
            raise _Altered(name)
        return True

    def _is_whole(self, key: str) -> bool:
        """Whether there is an entry with all that it has, each of its size; what is wrong is noted."""
        try:
            found = self._entry(key)
        except _Altered:
            self._wrong[key] = True
            return False
        except _Lost:
            self._wrong[key] = False
            return False
        if found is None:
            return False
        blobs = {blob.sha256: blob for blob in found[1].values()}.values()
        if not all(self._transport.has(f"cas/{blob.sha256}", blob.size) for blob in blobs):
            self._wrong.setdefault(key, False)
        return key not in self._wrong

    def _send(self, artifact: Artifact, look: bool) -> str:
        if not self._health.writes:
            return FAILED
        key, moved = artifact.key, 0
        try:
            places = files_of(artifact)
            there = self._is_whole(key) if look else self._transport.has(f"ac/{key}")
            if there and key not in self._wrong:
                return THERE
            entry = write_entry(places)
            if len(places) > MOST_FILES or len(entry) > _MOST_ENTRY or places[MANIFEST].size > MOST_BYTES:
                what = f"{len(places):,} files, more than a remote store may have of one artifact"
                self._health.warn("large", f"{artifact.manifest['stage']} has left {what}; it is not sent")
                return FAILED
            for blob, place in {blob.sha256: (blob, artifact.folder / name) for name, blob in places.items()}.values():
                name = f"cas/{blob.sha256}"
                if self._wrong.get(key) or not self._transport.has(name, blob.size):
                    self._transport.write(name, place)
                    moved += blob.size
            self._transport.write(f"ac/{key}", entry)
        except OSError:
            # Somebody took it away meanwhile: whoever needs it next makes it, and sends it.
            return GONE
        except Exception as error:
            self._health.failed(self._failure(error), writing=True)
            return FAILED
        self._health.worked()
        self._wrong.pop(key, None)
        self._count("sent", moved)
        return SENT

    def _count(self, what: str, size: int) -> None:
        with self._lock:
            for name, more in ((what, 1), (f"{what}_bytes", size)):
                setattr(self.tally, name, getattr(self.tally, name) + more)


@contextmanager
def _names_that_can_be(manifest: Mapping[str, Any]) -> Iterator[None]:
    """Raises _Altered for names that no disk takes: nobody wrote such an artifact."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_FILES:
            raise _Altered(f"ac/{manifest['key']}") from error
        raise
