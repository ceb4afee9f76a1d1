"""The integer graph on disk, and what it says about its layers."""

from pathlib import Path

import numpy as np
import pytest

from stages.graph import Graph, Tensor
from stages.models.builder import ModelBuilder
from stages.reference.integer import run_graph, to_logical, to_physical
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


def test_a_saved_graph_computes_the_same(graph: Graph, tmp_path: Path) -> None:
    graph.save(tmp_path)
    loaded = Graph.load(tmp_path)
    x = np.random.default_rng(1).integers(-128, 128, (1, 6, 6, 4), dtype=np.int8)
    before, after = run_graph(graph, [x]), run_graph(loaded, [x])
    assert len(np.unique(before[graph.outputs[0]])) > 5
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


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


def test_a_float_operator_has_its_macs() -> None:
    builder = ModelBuilder()
    x = builder.input("x", (1, 5, 5, 2), "float32")
    y = builder.conv2d(x, np.ones((3, 2, 2, 2), np.float32), np.ones(3, np.float32), padding="valid")
    y = builder.depthwise_conv2d(y, np.ones((1, 3, 3, 3), np.float32), np.ones(3, np.float32))
    builder.output(builder.fully_connected(y, np.ones((7, 48), np.float32), np.ones(7, np.float32)))
    graph = integer_graph(builder.build())
    assert [graph.macs(layer) for layer in graph.layers] == [16 * 3 * 8, 16 * 3 * 9, 48 * 7]


def test_planar_tensors_lie_channel_by_channel() -> None:
    tensor = Tensor(name="t", shape=(2, 3, 4, 5), dtype="int8", layout="NCHW")
    logical = np.arange(120, dtype=np.int8).reshape(2, 3, 4, 5)
    physical = to_physical(logical, tensor)
    assert physical.shape == tensor.physical_shape == (2, 5, 3, 4)
    assert physical[1, 4, 2, 3] == logical[1, 2, 3, 4]
    assert physical[0, 1, 0, 2] == logical[0, 0, 2, 1]
    assert np.array_equal(to_logical(physical.reshape(-1), tensor), logical)
