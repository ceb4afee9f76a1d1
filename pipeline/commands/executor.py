"""The executor that a command selects with `executor=`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pipeline.runs.executor import Executor, Local

EXECUTOR = "executor"
_selected: list[Executor] = []


@contextmanager
def selected_executor(values: Mapping[str, str]) -> Iterator[Executor]:
    """Select the executor of `executor=` while the context lasts. Raises PipelineError."""
    text = values.get(EXECUTOR, "local")
    if text == "local":
        yield Local()
        return
    from pipeline.distributed.choice import executor_of

    executor = executor_of(text)
    _selected.append(executor)
    try:
        yield executor
    finally:
        _selected.remove(executor)
        executor.close()


def current_executor() -> Executor:
    """Return the selected executor, by default this process."""
    return _selected[-1] if _selected else Local()
