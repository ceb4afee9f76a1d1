"""The integer graph on disk."""

import time
from pathlib import Path

import pytest

from stages.ir.models import zoo
from tests.support.integer import integer_graph


def test_the_same_graph_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also at another time: archives like to store the hour."""
    graph = integer_graph(zoo.build("ds_cnn"))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        graph.save(tmp_path / name)
        monkeypatch.setattr(time, "time", lambda: 2e9)
        monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(2e9))
    for file in ("graph.json", "constants.npz"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
