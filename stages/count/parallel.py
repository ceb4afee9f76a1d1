"""Run parts of a measurement in parallel, in this process or on other machines."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# Starts a call of `module:name` with arguments elsewhere; returns a function that waits for its result.
Begin = Callable[[str, tuple[Any, ...]], Callable[[], Any]]

_AT_ONCE = 2


def results(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], begin: Begin | None
) -> Generator[Any, None, None]:
    """Yield the results of `function` for each tuple of arguments, in order.

    Its exceptions propagate. Running calls are awaited, except after an interruption.
    """
    if begin is not None:
        waiting = [begin(f"{function.__module__}:{function.__name__}", values) for values in calls]
        yield from (wait() for wait in waiting)
        return
    pool, wait_for_running = ThreadPoolExecutor(_AT_ONCE), True
    try:
        running = [pool.submit(function, *values) for values in calls]
        yield from (future.result() for future in running)
    except KeyboardInterrupt:
        # Running calls end with the process.
        wait_for_running = False
        raise
    finally:
        pool.shutdown(wait=wait_for_running, cancel_futures=True)
