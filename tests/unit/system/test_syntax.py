"""Parsing modules in several threads."""

import ast
import threading

import pytest

from stages.support.system import syntax


def test_two_threads_do_not_meet_in_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    meeting, met = threading.Barrier(2, timeout=0.2), []

    def parse(source: str) -> ast.Module:
        try:
            meeting.wait()
            met.append(True)
        except threading.BrokenBarrierError:
            met.append(False)
        return ast.Module(body=[], type_ignores=[])

    monkeypatch.setattr(syntax.ast, "parse", parse)
    threads = [threading.Thread(target=syntax.parse, args=("",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == [False, False]
