"""Where the stages of a command run, as its `executor=` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pipeline.runs.executor import Executor, Local

EXECUTOR = "executor"
_chosen: list[Executor] = []


@contextmanager
def executing(given: Mapping[str, str]) -> Iterator[Executor]:
    """While this lasts, what is chosen by a command's own `executor=` is what `chosen` gives. Raises PipelineError."""
    text = given.get(EXECUTOR, "local")
    if text == "local":
        yield Local()
        return
    from pipeline.distributed.choice import executor_of

    executor = executor_of(text)
    _chosen.append(executor)
    try:
        yield executor
    finally:
        _chosen.remove(executor)
        executor.close()


def chosen() -> Executor:
    """Where stages run; here unless something else was chosen."""
    return _chosen[-1] if _chosen else Local()
