"""A remote store over SFTP: ssh://. The machine's host key must be known."""

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

from pipeline.remote.folder import blocks
from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import SECONDS, Denied, RemoteError, Unusable

# Used in addition to ~/.ssh/known_hosts.
_SYSTEM = "/etc/ssh/ssh_known_hosts"
# Failed connections are reported as RemoteError, so paramiko's log is not needed.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
# Bytes per SFTP request.
_REQUEST = 1 << 15


class SshTransport:
    """A folder of another machine, over one connection that is opened on first use."""

    def __init__(self, settings: RemoteSettings) -> None:
        self._settings = settings
        self._root = urlsplit(settings.url).path.rstrip("/")
        self._client: paramiko.SSHClient | None = None
        self._files: paramiko.SFTPClient | None = None
        self._folders: set[str] = set()
        # A connection of paramiko handles one request at a time.
        self._lock = threading.Lock()

    def _disconnect(self) -> None:
        """Close the connection; the next request opens a new one."""
        client, self._client, self._files = self._client, None, None
        if client is not None:
            client.close()

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        """See Transport."""
        with self._lock:
            with self._convert_errors():
                try:
                    stream = self._sftp().open(f"{self._root}/{name}", "rb")
                except FileNotFoundError:
                    return False
            try:
                while True:
                    with self._convert_errors():
                        block = stream.read(_REQUEST)
                    if not block:
                        return True
                    take(block)
            finally:
                # The file is complete, or an exception is already raised.
                with contextlib.suppress(Exception):
                    stream.close()

    def has(self, name: str, size: int | None = None) -> bool:
        """See Transport."""
        with self._lock, self._convert_errors():
            try:
                info = self._sftp().stat(f"{self._root}/{name}")
            except FileNotFoundError:
                return False
        is_file = info.st_mode is None or stat.S_ISREG(info.st_mode)
        return is_file and (size is None or info.st_size in (None, size))

    def write(self, name: str, content: Path | bytes) -> None:
        """See Transport."""
        place = f"{self._root}/{name}"
        partial_file = f"{place}.{uuid.uuid4().hex}.part"
        with self._lock, self._convert_errors():
            files = self._sftp()
            self._make_folder(place.rpartition("/")[0])
            try:
                with files.open(partial_file, "wb") as stream:
                    stream.set_pipelined(True)
                    for block in blocks(content):
                        stream.write(block)
                files.posix_rename(partial_file, place)
            except Exception:
                with contextlib.suppress(Exception):
                    files.remove(partial_file)
                raise

    def _make_folder(self, folder: str) -> None:
        """Create a folder and its parents if necessary."""
        if not folder or folder in self._folders:
            return
        try:
            self._sftp().stat(folder)
        except FileNotFoundError:
            self._make_folder(folder.rpartition("/")[0])
            # Another machine may create it at the same time.
            with contextlib.suppress(OSError):
                self._sftp().mkdir(folder)
        self._folders.add(folder)

    def _sftp(self) -> Any:
        """Return the connection, opened if necessary. Raises RemoteError and paramiko's errors."""
        if self._files is None:
            parts = urlsplit(self._settings.url)
            self._client = client = paramiko.SSHClient()
            client.load_system_host_keys()
            with contextlib.suppress(OSError):
                client.load_system_host_keys(_SYSTEM)
            client.set_missing_host_key_policy(_Refuse())
            steps = ("timeout", "banner_timeout", "auth_timeout", "channel_timeout")
            client.connect(
                parts.hostname or "",
                port=parts.port or paramiko.config.SSH_PORT,
                username=self._settings.user or None,
                password=self._settings.password or None,
                **dict.fromkeys(steps, SECONDS),
            )
            self._files = client.open_sftp()
            self._files.get_channel().settimeout(SECONDS)
        return self._files

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Turn paramiko's exceptions into RemoteError; close a failed connection."""
        try:
            yield
        except RemoteError:
            self._disconnect()
            raise
        except paramiko.BadHostKeyException as error:
            self._disconnect()
            what = f"the host key of {error.hostname} ({error.key.fingerprint}) differs from ~/.ssh/known_hosts"
            raise Unusable(f"{what}; the machine was reinstalled, or is another one") from error
        except (PermissionError, paramiko.AuthenticationException) as error:
            raise Denied(_first_line(error)) from error
        except Exception as error:
            if not isinstance(error, OSError) or isinstance(error, (ConnectionError, TimeoutError)):
                self._disconnect()
            raise RemoteError(_first_line(error)) from error


class _Refuse(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    """Refuses machines whose host key is not known."""

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Raise Unusable."""
        what = f"{hostname} is not in ~/.ssh/known_hosts ({key.fingerprint})"
        raise Unusable(f"{what}; connect once with ssh and verify its key")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
