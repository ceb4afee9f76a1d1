"""Running single layers and graphs in numpy: what is checked, and where float operators come from."""

import numpy as np
import pytest

from stages.ir.reference.integer import run_layer
from tests.support.integer import integer_graph, one_input


def test_an_input_of_another_shape_or_type_is_refused() -> None:
    graph = integer_graph(one_input((1, 4), "int8", (0.1, 0), lambda b, x: b.relu(x)))
    view = graph.view(graph.layers[0])
    with pytest.raises(ValueError, match=r"input x is int8\[1, 4\], got int8\[1, 5\]"):
        run_layer(view, [np.zeros((1, 5), np.int8)])
    with pytest.raises(ValueError, match=r"got uint8\[1, 4\]"):
        run_layer(view, [np.zeros((1, 4), np.uint8)])
