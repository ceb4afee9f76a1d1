"""What decides which buffer lies in fast memory: bytes read and written, by layer."""

from stages.ir.graph import Graph, Layer, Move, Pool2D, Tensor
from stages.lower.arena import liveness
from stages.lower.arena.traffic import arena_traffic, reads_of_weights
from tests.support.kernels.mini import mini_graph


def pooled() -> Graph:
    """x (1, 4, 4, 8) pooled in windows of 3 x 3 by steps of 1 to y, of which z is another name."""
    shapes = {"x": (1, 4, 4, 8), "y": (1, 4, 4, 8), "z": (16, 8)}
    tensors = {name: Tensor(name=name, shape=shape, dtype="int8") for name, shape in shapes.items()}
    tensors["z"] = tensors["z"].model_copy(update={"alias_of": "y"})
    window = {"kernel": (3, 3), "stride": (1, 1), "padding": (1, 1, 1, 1)}
    pool = Pool2D(op="max_pool2d", output_zero_point=0, act_min=-128, act_max=127, **window)
    layers = [
        Layer(index=0, name="y", op=pool, inputs=("x",), outputs=("y",)),
        Layer(index=1, name="z", op=Move(kind="reshape"), inputs=("y",), outputs=("z",)),
    ]
    return Graph(tensors, layers, ["x"], ["z"])


def test_each_window_reads_and_scratch_is_written_and_read_as_often() -> None:
    graph = pooled()
    scratch = {0: {"rows": 30, "sums": 10}}
    traffic = arena_traffic(graph, liveness(graph, scratch), scratch, {1})
    # x is filled once and read nine times; y written once, and read as z.
    assert traffic == {"x": 128 + 9 * 128, "y": 128 + 128, "scratch:0:rows": 2 * 864, "scratch:0:sums": 2 * 288}


def test_weights_are_read_for_each_multiplication() -> None:
    graph = mini_graph(batch=8, depth=12, units=(6,))
    assert reads_of_weights(graph, graph.layers[0], 72) == 8
    assert reads_of_weights(graph, graph.layers[0], 10_000) == 1
