"""Parts of a measurement side by side: two at a time in this process, or on other machines."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# Begins to call `module:name` with some values elsewhere; what it gives waits for the result.
Begin = Callable[[str, tuple[Any, ...]], Callable[[], Any]]

_AT_ONCE = 2


def results(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], begin: Begin | None
) -> Generator[Any, None, None]:
    """What a function gives for each of these values, in their order, as it becomes known. Raises what it raises.

    Those that run are waited for, but for an interruption.
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
        # What runs ends with the process.
        wait_for_running = False
        raise
    finally:
        pool.shutdown(wait=wait_for_running, cancel_futures=True)
