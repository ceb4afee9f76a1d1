"""A remote store in a bucket or a folder: s3://, gs://, file:// and ssh://, by fsspec (the group `remote`)."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec

from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import BLOCK, CONNECT, READ, Denied, Pace, RemoteError

# What is written there has its name from the first byte on; a bucket's objects appear whole.
_IN_PLACE = ("file", "ssh")


class FilesTransport:
    """A folder of fsspec's."""

    def __init__(self, settings: RemoteSettings) -> None:
        # One connection of paramiko's takes one request at a time: threads would take each other's answers.
        self._alone = threading.Lock() if settings.scheme == "ssh" else contextlib.nullcontext()
        self._aside = settings.scheme in _IN_PLACE
        with _told():
            if settings.scheme == "ssh":
                from pipeline.remote.ssh import sftp

                self._fs, root = sftp(settings)
            else:
                self._fs, root = fsspec.core.url_to_fs(settings.url, **_options(settings))
        self._root = str(root).rstrip("/")
        self._made: set[str] = set()

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        """As Transport says."""
        with self._alone, _told():
            try:
                stream = self._fs.open(self._place(name), "rb", cache_type="none")
            except FileNotFoundError:
                return False
        pace = Pace(READ)
        try:
            while True:
                with self._alone, _told():
                    block = stream.read(BLOCK)
                pace.moved(len(block))
                if not block:
                    return True
                take(block)
        finally:
            # All was read, or something else is told.
            with self._alone, contextlib.suppress(Exception):
                stream.close()

    def has(self, name: str, size: int | None = None) -> bool:
        """As Transport says."""
        with self._alone, _told():
            try:
                there = self._fs.info(self._place(name)).get("size")
            except FileNotFoundError:
                return False
        return size is None or there is None or there == size

    def write(self, name: str, content: Path | bytes) -> None:
        """As Transport says."""
        place = self._place(name)
        with self._alone, _told():
            if not self._aside:
                self._send(place, content)
                return
            folder = place.rpartition("/")[0]
            if folder not in self._made:
                self._fs.makedirs(folder, exist_ok=True)
                self._made.add(folder)
            aside = f"{place}.{uuid.uuid4().hex}.part"
            try:
                self._send(aside, content)
                self._fs.mv(aside, place)
            except BaseException:
                with contextlib.suppress(Exception):
                    self._fs.rm_file(aside)
                raise

    def _send(self, place: str, content: Path | bytes) -> None:
        if isinstance(content, bytes):
            self._fs.pipe_file(place, content)
        else:
            self._fs.put_file(str(content), place)

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}"


def _options(settings: RemoteSettings) -> dict[str, Any]:
    common: dict[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
    if settings.scheme == "s3":
        limits = {"connect_timeout": CONNECT, "read_timeout": READ, "retries": {"max_attempts": 1}}
        return {**common, "config_kwargs": limits}
    return common


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What the libraries below raise as RemoteError; each has exceptions of its own."""
    try:
        yield
    except RemoteError:
        raise
    except PermissionError as error:
        raise Denied(_first_line(error)) from error
    except Exception as error:
        denied = "Credentials" in type(error).__name__ or "Authentication" in type(error).__name__
        raise (Denied if denied else RemoteError)(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
