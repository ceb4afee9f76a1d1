"""int8 stays int8, uint8 stays uint8."""

import numpy as np
import pytest

from stages.ir.graph import Activation, Graph, Layer, Tensor
from stages.ir.models.builder import ModelBuilder
from stages.quantize.checks import check_widths, widened
from tests.support.integer import integer_graph


def graph(dtype: str, weights: str = "int8") -> Graph:
    x, y = Tensor(name="x", shape=(4,), dtype=dtype), Tensor(name="y", shape=(4,), dtype="int8")  # type: ignore[arg-type]
    layer = Layer(
        index=0, name="y", op=Activation(function="relu"), inputs=("x",), outputs=("y",), constants={"weights": "w"}
    )
    return Graph({"x": x, "y": y}, [layer], ["x"], ["y"], {"w": np.zeros(4, weights)})


def test_eight_bits_are_not_wide() -> None:
    assert widened(graph("int8")) == [] == widened(graph("uint8", "uint8"))
    check_widths(graph("int8"))


@pytest.mark.parametrize("types", [("int16", "int8"), ("int32", "int8"), ("int8", "int16")])
def test_sixteen_bits_are_found(types: tuple[str, str]) -> None:
    assert widened(graph(*types)) == ["y"]
    with pytest.raises(AssertionError, match="wider than 8 bits: y"):
        check_widths(graph(*types))


@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (2, 1)])
def test_a_model_of_sixteen_bits_has_them_between_its_tensors(stride: tuple[int, int]) -> None:
    """The phases of a TRANSPOSE_CONV, as channels of one layer or joined."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 5, 8), "int16", 0.01, 0)
    shape = (1, 4 * stride[0], 5 * stride[1], 3)
    weights = np.ones((3, 3, 3, 8), np.int8)
    b.output(b.transpose_conv(x, weights, None, weight_scale=0.01, shape=shape, stride=stride, out=(0.1, 0)))
    graph = integer_graph(b.build())
    between = {tensor.dtype for tensor in graph.tensors.values() if tensor.tflite_index is None}
    assert between == {"int16"}
    check_widths(graph)
