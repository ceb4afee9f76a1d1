"""int8 stays int8, uint8 stays uint8."""

import numpy as np
import pytest

from stages.graph import Activation, Graph, Layer, Tensor
from stages.quantize.checks import check_widths, widened


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
