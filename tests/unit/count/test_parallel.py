"""Parts of a measurement side by side: who waits for whom."""

from threading import Event, Timer

import pytest

from stages.count.parallel import results


@pytest.mark.parametrize(("error", "waits"), [(KeyboardInterrupt, False), (ValueError, True)])
def test_an_error_waits_for_what_runs_and_an_interruption_does_not(error: type[BaseException], *, waits: bool) -> None:
    begun, go_on, ended = Event(), Event(), Event()
    timer = Timer(0.2 if waits else 20, go_on.set)
    timer.start()

    def call(work: str) -> None:
        if work == "fails":
            begun.wait()
            raise error
        begun.set()
        go_on.wait()
        ended.set()

    try:
        with pytest.raises(error):
            list(results(call, [("fails",), ("runs",)], None))
        assert ended.is_set() == waits
    finally:
        timer.cancel()
        go_on.set()
