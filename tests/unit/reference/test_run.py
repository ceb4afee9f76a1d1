"""Running single layers and graphs in numpy: what is checked, and where float operators come from."""

import numpy as np
import pytest

from stages.models.builder import ModelBuilder
from stages.reference.integer import run_graph, run_layer
from tests.support.integer import integer_graph, one_input


def test_an_input_of_another_shape_or_type_is_refused() -> None:
    graph = integer_graph(one_input((1, 4), "int8", (0.1, 0), lambda b, x: b.relu(x)))
    view = graph.view(graph.layers[0])
    with pytest.raises(ValueError, match=r"input x is int8\[1, 4\], got int8\[1, 5\]"):
        run_layer(view, [np.zeros((1, 5), np.int8)])
    with pytest.raises(ValueError, match=r"got uint8\[1, 4\]"):
        run_layer(view, [np.zeros((1, 4), np.uint8)])


def test_float_operators_are_the_callers() -> None:
    """Between the float edges of a quantized model."""
    builder = ModelBuilder()
    x = builder.input("x", (1, 3), "float32")
    y = builder.dequantize(builder.quantize(builder.tanh(x, name="float tanh"), "int8", (0.01, 0)))
    builder.output(y)
    graph = integer_graph(builder.build())
    values = np.array([[-1.0, 0.3, 2.0]], np.float32)
    with pytest.raises(ValueError, match="float tanh: the integer reference has no float operators"):
        run_graph(graph, [values])
    found = run_graph(graph, {"x": values}, lambda view, inputs: np.tanh(inputs[0]))
    assert found[graph.outputs[0]] == pytest.approx(np.array([[-0.76, 0.29, 0.96]]), abs=1e-6)


def test_constants_are_tensors_like_others() -> None:
    constant = np.array([[[[5, -5]]]], np.int8)
    data = one_input(
        (1, 2, 2, 2), "int8", (0.1, 0), lambda b, x: b.add(x, b.constant("c", constant, 0.1, 0), out=(0.1, 0))
    )
    graph = integer_graph(data)
    found = run_graph(graph, [np.full((1, 2, 2, 2), 7, np.int8)])
    assert found[graph.outputs[0]][0, 1, 1].tolist() == [12, 2]
    assert np.array_equal(found["add/operand1"], constant)
