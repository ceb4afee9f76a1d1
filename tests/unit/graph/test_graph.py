"""The integer graph on disk, and what it says about its layers."""

from pathlib import Path

import numpy as np
import pytest

from stages.ir.graph import Graph
from stages.ir.models.builder import ModelBuilder
from tests.support.integer import integer_graph


@pytest.fixture(scope="module")
def graph() -> Graph:
    """A convolution, a planar depthwise one, an addition of a constant, a softmax over rows."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder()
    x = builder.input("x", (1, 6, 6, 4), "int8", 0.05, 3)
    weights = rng.integers(-127, 128, (8, 3, 3, 4), dtype=np.int8)
    y = builder.conv2d(x, weights, np.zeros(8, np.int32), weight_scale=0.01, stride=(2, 2), out=(0.1, 0))
    weights = rng.integers(-127, 128, (1, 3, 3, 16), dtype=np.int8)
    y = builder.depthwise_conv2d(y, weights, np.ones(16, np.int32), weight_scale=[0.02] * 16, out=(0.1, 1))
    y = builder.add(y, builder.constant("c", rng.integers(-9, 9, (16,), dtype=np.int8), 0.1, 0))
    builder.output(builder.softmax(builder.reshape(y, (9, 16))))
    return integer_graph(builder.build(), "planar depthwise")


def test_the_same_graph_gives_the_same_bytes(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also at another time: archives like to store the hour."""
    import time

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        graph.save(tmp_path / name)
        monkeypatch.setattr(time, "time", lambda: 2e9)
        monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(2e9))
    for file in ("graph.json", "constants.npz"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_another_format_is_refused(graph: Graph, tmp_path: Path) -> None:
    graph.save(tmp_path)
    path = tmp_path / "graph.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 7'))
    with pytest.raises(ValueError, match="format 7"):
        Graph.load(tmp_path)


def test_macs_and_kinds(graph: Graph) -> None:
    # By hand: 3 x 3 outputs of 8 channels from 3 x 3 x 4, then 16 channels from 3 x 3.
    assert [(layer.kind, graph.macs(layer)) for layer in graph.layers] == [
        ("conv2d", 9 * 8 * 36),
        ("depthwise_conv2d", 9 * 16 * 9),
        ("add", 0),
        ("reshape", 0),
        ("softmax", 0),
    ]
