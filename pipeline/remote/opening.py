"""The way to a remote store, by its URL. What takes a while to import is imported here, when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import Transport, Unusable

GROUP = "remote"
_NEEDS = {"file": "fsspec", "s3": "s3fs", "gs": "gcsfs", "ssh": "paramiko"}


def open_remote(
    settings: RemoteSettings, install: Callable[[str], bool] | None = None, how: Callable[[str], str] = str
) -> Transport:
    """The transport for a URL.

    `install` is asked to install the group of what is missing, and says whether it did; `how` is the command that does.
    Raises RemoteError.
    """
    package = _NEEDS.get(settings.scheme)
    if package is None:
        from pipeline.remote.http import HttpTransport

        return HttpTransport(settings)
    try:
        there = find_spec(package) is not None or (install is not None and install(GROUP))
    except Exception as error:
        raise Unusable(str(error)) from error
    if not there:
        raise Unusable(f"{settings.scheme}:// needs the Python package {package}: {how(GROUP)}")
    from pipeline.remote.files import FilesTransport

    return FilesTransport(settings)
