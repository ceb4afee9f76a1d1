"""Which executor `executor=` means."""

from __future__ import annotations

from importlib.util import find_spec

from pipeline.errors import PipelineError, RecipeError
from pipeline.keys.package_groups import install_command, install_group
from pipeline.runs.executor import Executor, Local
from stages.support.messages import escape

GROUP = "dask"
PACKAGES = ("distributed", "cryptography")
_LOCAL, _CLUSTER = "local", "dask"


def executor_of(text: str) -> Executor:
    """Return `local`, `dask` (a cluster on this machine), or the scheduler at `dask://HOST:PORT`.

    `tls://` and `tcp://` say how to connect. Raises PipelineError.
    """
    check_executor(text)
    if text == _LOCAL:
        return Local()
    ready()
    from pipeline.distributed.connection import connection_to
    from pipeline.distributed.dask_executor import DaskExecutor

    return DaskExecutor(None if text == _CLUSTER else connection_to(text))


def check_executor(text: str) -> None:
    """Raise PipelineError for what names no executor. Nothing is installed, and nothing is connected to."""
    if text in (_LOCAL, _CLUSTER):
        return
    if "://" not in text:
        raise RecipeError(f"executor={escape.name(text)}: should be local, dask, or tls://HOST:PORT")
    if not _missing():
        from pipeline.distributed.connection import connection_to

        connection_to(text)


def _missing() -> list[str]:
    return [package for package in PACKAGES if find_spec(package) is None]


def ready() -> None:
    """Install the Python packages of the group `dask` if they are missing. Raises PipelineError."""
    missing = _missing()
    if missing and not install_group(GROUP):
        raise PipelineError(
            f"executor=dask needs the Python package {missing[0]}", hint=f"install it: {install_command(GROUP)}"
        )
