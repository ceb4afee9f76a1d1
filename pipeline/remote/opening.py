"""The way to a remote store, by its URL. What takes a while to import is imported here, when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import Transport, Unusable

GROUP = "remote"
# What a scheme needs of that group; others need nothing.
_NEEDS = {"s3": "botocore", "gs": "google.auth", "ssh": "paramiko"}


def open_remote(
    settings: RemoteSettings, install: Callable[[str], bool] | None = None, how: Callable[[str], str] = str
) -> Transport:
    """The transport for a URL.

    `install` is asked to install the group of what is missing, and says whether it did; `how` is the command that does.
    Raises RemoteError.
    """
    package = _NEEDS.get(settings.scheme)
    try:
        there = package is None or _is_there(package) or (install is not None and install(GROUP))
    except Exception as error:
        raise Unusable(str(error)) from error
    if not there:
        raise Unusable(f"{settings.scheme}:// needs the Python package {package}: {how(GROUP)}")
    if settings.scheme == "file":
        from pipeline.remote.folder import FolderTransport

        return FolderTransport(settings)
    if settings.scheme == "ssh":
        from pipeline.remote.ssh import SshTransport

        return SshTransport(settings)
    if settings.scheme in ("s3", "gs"):
        from pipeline.remote.buckets import GsTransport, S3Transport

        return (S3Transport if settings.scheme == "s3" else GsTransport)(settings)
    from pipeline.remote.http import HttpTransport

    return HttpTransport(settings)


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        # Of `google.auth` not even `google`.
        return False
