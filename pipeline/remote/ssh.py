"""SFTP to machines whose keys are known: fsspec's own way takes any key."""

from __future__ import annotations

import contextlib
from typing import Any

import paramiko
from fsspec.implementations.sftp import SFTPFileSystem

from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import CONNECT, READ, Unusable

# Beside ~/.ssh/known_hosts.
_SYSTEM = "/etc/ssh/ssh_known_hosts"


def sftp(settings: RemoteSettings) -> tuple[SFTPFileSystem, str]:
    """The files of a machine, and the folder of the store. Raises Unusable where its key is not known."""
    named = {"username": settings.user, "password": settings.password}
    found = _KnownHosts(
        **_KnownHosts._get_kwargs_from_urls(settings.url),
        **{name: value for name, value in named.items() if value},
        # What counts if fsspec no longer calls _connect.
        host_key_policy="reject",
        skip_instance_cache=True,
        timeout=CONNECT,
        banner_timeout=READ,
        auth_timeout=READ,
    )
    return found, str(_KnownHosts._strip_protocol(settings.url))


class _Refuse(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        what = f"{hostname} is not in ~/.ssh/known_hosts ({key.fingerprint})"
        raise Unusable(f"{what}; connect once with ssh, and compare its key")


class _KnownHosts(SFTPFileSystem):  # type: ignore[misc]
    def _connect(self) -> None:
        self.client: Any = paramiko.SSHClient()
        try:
            self.client.load_system_host_keys()
            with contextlib.suppress(OSError):
                self.client.load_system_host_keys(_SYSTEM)
            self.client.set_missing_host_key_policy(_Refuse())
            self.client.connect(self.host, **self.ssh_kwargs)
            self.ftp = self.client.open_sftp()
            self.ftp.get_channel().settimeout(READ)
        except paramiko.BadHostKeyException as error:
            self.client.close()
            what = f"{error.hostname} has another key ({error.key.fingerprint}) than ~/.ssh/known_hosts"
            raise Unusable(f"{what}; it was set up anew, or is somebody else") from error
        except BaseException:
            self.client.close()
            raise
