"""A remote store on a machine that SSH reaches, by SFTP: ssh://. Only machines whose keys are known are used."""

from __future__ import annotations

import contextlib
import logging
import stat
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import paramiko

from pipeline.remote.exchange import current
from pipeline.remote.folder import blocks
from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import Denied, RemoteError, Unusable

# Beside ~/.ssh/known_hosts.
_SYSTEM = "/etc/ssh/ssh_known_hosts"
# What it logs of a connection that fails is an error here, with a message of its own.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
# Bytes of one request of SFTP.
_REQUEST = 1 << 15


class SshTransport:
    """A folder of another machine, over one connection that is opened when it is first needed."""

    def __init__(self, settings: RemoteSettings) -> None:
        self._settings = settings
        self._root = urlsplit(settings.url).path.rstrip("/")
        self._client: paramiko.SSHClient | None = None
        self._files: paramiko.SFTPClient | None = None
        self._folders: set[str] = set()
        # A connection of paramiko's takes one request at a time.
        self.alone = threading.Lock()

    def abort(self) -> None:
        """Close the connection; the next exchange opens another."""
        client, self._client, self._files = self._client, None, None
        if client is not None:
            client.close()

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        """As Transport says."""
        with self._told():
            try:
                stream = self._sftp().open(f"{self._root}/{name}", "rb")
            except FileNotFoundError:
                return False
        try:
            while True:
                with self._told():
                    block = stream.read(_REQUEST)
                if not block:
                    return True
                take(block)
        finally:
            # All was read, or another error is on its way.
            with contextlib.suppress(Exception):
                stream.close()

    def has(self, name: str, size: int | None = None) -> bool:
        """As Transport says."""
        with self._told():
            try:
                found = self._sftp().stat(f"{self._root}/{name}")
            except FileNotFoundError:
                return False
        is_file = found.st_mode is None or stat.S_ISREG(found.st_mode)
        return is_file and (size is None or found.st_size in (None, size))

    def write(self, name: str, content: Path | bytes) -> None:
        """As Transport says."""
        place = f"{self._root}/{name}"
        partial_file = f"{place}.{uuid.uuid4().hex}.part"
        with self._told():
            files = self._sftp()
            self._make_folder(place.rpartition("/")[0])
            try:
                with files.open(partial_file, "wb") as stream:
                    stream.set_pipelined(True)
                    for block in blocks(content):
                        stream.write(block)
                        current().moved(len(block))
                files.posix_rename(partial_file, place)
            except Exception:
                with contextlib.suppress(Exception):
                    files.remove(partial_file)
                raise

    def _make_folder(self, folder: str) -> None:
        """Make a folder, and those above it, where they are not there."""
        if not folder or folder in self._folders:
            return
        try:
            self._sftp().stat(folder)
        except FileNotFoundError:
            self._make_folder(folder.rpartition("/")[0])
            # Another machine may make it at the same time.
            with contextlib.suppress(OSError):
                self._sftp().mkdir(folder)
        self._folders.add(folder)

    def _sftp(self) -> Any:
        """The connection. Raises RemoteError, and what paramiko raises."""
        if self._files is None:
            parts = urlsplit(self._settings.url)
            self._client = client = paramiko.SSHClient()
            client.load_system_host_keys()
            with contextlib.suppress(OSError):
                client.load_system_host_keys(_SYSTEM)
            client.set_missing_host_key_policy(_Refuse())
            # Each step has a time of its own there; the exchange ends all of them.
            steps = ("timeout", "banner_timeout", "auth_timeout", "channel_timeout")
            patience = dict.fromkeys(steps, current().patience() + 1)
            client.connect(
                parts.hostname or "",
                port=parts.port or paramiko.config.SSH_PORT,
                username=self._settings.user or None,
                password=self._settings.password or None,
                **patience,
            )
            self._files = client.open_sftp()
        return self._files

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What paramiko raises as RemoteError; a connection that failed is closed."""
        try:
            yield
        except RemoteError:
            self.abort()
            raise
        except paramiko.BadHostKeyException as error:
            self.abort()
            what = f"{error.hostname} has another key ({error.key.fingerprint}) than ~/.ssh/known_hosts"
            raise Unusable(f"{what}; it was set up anew, or is somebody else") from error
        except (PermissionError, paramiko.AuthenticationException) as error:
            raise Denied(_first_line(error)) from error
        except Exception as error:
            if not isinstance(error, OSError) or isinstance(error, (ConnectionError, TimeoutError)):
                self.abort()
            raise RemoteError(_first_line(error)) from error


class _Refuse(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        what = f"{hostname} is not in ~/.ssh/known_hosts ({key.fingerprint})"
        raise Unusable(f"{what}; connect once with ssh, and compare its key")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
