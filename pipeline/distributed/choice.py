"""The executor that `executor=` selects."""

from importlib.util import find_spec

from pipeline.errors import PipelineError, RecipeError
from pipeline.keys.package_groups import install_command, install_group
from pipeline.runs.executor import Executor, Local
from stages.support.messages import escape

GROUP = "dask"
PACKAGES = ("distributed", "cryptography")
_LOCAL, _CLUSTER = "local", "dask"


def executor_of(text: str) -> Executor:
    """Return the executor of `local`, `dask` (a local cluster) or a scheduler's address.

    An address is `dask://HOST:PORT`, `tls://HOST:PORT` or `tcp://HOST:PORT`. Raises PipelineError.
    """
    check_executor(text)
    if text == _LOCAL:
        return Local()
    install_dask()
    from pipeline.distributed.connection import connection_to
    from pipeline.distributed.dask_executor import DaskExecutor

    return DaskExecutor(None if text == _CLUSTER else connection_to(text))


def check_executor(text: str) -> None:
    """Raise PipelineError for an invalid `executor=`, without installing or connecting."""
    if text in (_LOCAL, _CLUSTER):
        return
    if "://" not in text:
        raise RecipeError(f"executor={escape.name(text)}: expected local, dask or tls://HOST:PORT")
    if not _missing():
        from pipeline.distributed.connection import connection_to

        connection_to(text)


def _missing() -> list[str]:
    return [package for package in PACKAGES if find_spec(package) is None]


def install_dask() -> None:
    """Install the Python packages of the group `dask` if necessary. Raises PipelineError."""
    missing = _missing()
    if missing and not install_group(GROUP):
        raise PipelineError(
            f"executor=dask needs the Python package {missing[0]}", hint=f"install it: {install_command(GROUP)}"
        )
