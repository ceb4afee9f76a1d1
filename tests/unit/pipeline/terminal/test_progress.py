"""The moving lines: on a terminal only."""

import io

import pytest

from pipeline.terminal.progress import ProgressDisplay


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_quiet_when_not_a_terminal() -> None:
    stream = io.StringIO()
    display = ProgressDisplay(stream)
    display.progress("demo", "emit", "writes", 0.5)
    display.line("done")
    display.end("demo", "emit")
    display.close()
    assert stream.getvalue() == "done\n"


class Drawn:
    """A renderable that a file may have without rich."""

    def __rich__(self) -> str:
        return "by rich"

    def plain(self) -> str | None:
        return "plain\n"


class Ascii(io.StringIO):
    encoding = "ascii"


@pytest.mark.parametrize(("stream", "shown"), [(io.StringIO(), "plain"), (Terminal(), "by rich"), (Ascii(), "by rich")])
def test_a_file_gets_a_table_without_rich(stream: io.StringIO, shown: str) -> None:
    ProgressDisplay(stream).show(lambda width: Drawn())
    assert stream.getvalue() == f"{shown}\n"
