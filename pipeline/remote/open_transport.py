"""Create the transport of a remote store from its URL; slow imports happen on first use."""

from collections.abc import Callable
from importlib.util import find_spec

from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import Transport, Unusable

GROUP = "remote"
# The package of the group that a scheme needs.
_NEEDS = {"s3": "botocore", "gs": "google.auth", "ssh": "paramiko"}


def open_transport(
    settings: RemoteSettings, install: Callable[[str], bool] | None = None, how: Callable[[str], str] = str
) -> Transport:
    """Return the transport for a URL. Raises RemoteError.

    `install` installs a missing package group and returns whether it did; `how` returns the command that does.
    """
    package = _NEEDS.get(settings.scheme)
    try:
        is_available = package is None or _is_installed(package) or (install is not None and install(GROUP))
    except Exception as error:
        raise Unusable(str(error)) from error
    if not is_available:
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


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        # For `google.auth`, `google` is missing too.
        return False
