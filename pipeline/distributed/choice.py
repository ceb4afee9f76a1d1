"""Which executor `executor=` means."""

from __future__ import annotations

import re
from importlib.util import find_spec

from pipeline.errors import PipelineError, RecipeError
from pipeline.keys.groups import how_to_install, install
from pipeline.runs.executor import Executor, Local
from stages.messages import escape

GROUP = "dask"
_SCHEME = "dask://"
_ADDRESS = re.compile(r"[\w.-]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}")


def executor_of(text: str) -> Executor:
    """`local`, `dask` (a cluster on this machine) or `dask://HOST:PORT`. Raises PipelineError."""
    if text == "local":
        return Local()
    address = text.removeprefix(_SCHEME) if text.startswith(_SCHEME) else ""
    if text != "dask" and not _ADDRESS.fullmatch(address):
        raise RecipeError(f"executor={escape.name(text)}: should be local, dask, or dask://HOST:PORT")
    ready()
    from pipeline.distributed.dask_executor import DaskExecutor

    return DaskExecutor(address)


def ready() -> None:
    """See to it that dask.distributed is installed. Raises PipelineError."""
    if find_spec("distributed") is None and not install(GROUP):
        raise PipelineError(
            "executor=dask needs the Python package distributed", hint=f"install it: {how_to_install(GROUP)}"
        )
