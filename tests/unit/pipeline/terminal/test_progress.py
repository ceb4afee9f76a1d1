"""The moving lines: on a terminal only."""

from __future__ import annotations

import io

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


def test_terminal_shows_stage_and_message() -> None:
    stream = Terminal()
    display = ProgressDisplay(stream)
    display.progress("demo", "tensorize", "layer 3 of 28", 0.1)
    display.progress("demo", "compile", "weights.c")
    display.line("[x] this stays")
    display.end("demo", "tensorize")
    display.close()
    display.close()
    shown = stream.getvalue()
    assert "tensorize" in shown and "layer 3 of 28" in shown and "weights.c" in shown
    assert "[x] this stays\n" in shown
