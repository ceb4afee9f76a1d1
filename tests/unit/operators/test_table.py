"""The declared operators: complete, and with the shapes that LiteRT's own models have."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from stages.models.tflite_reader import read
from stages.operators.arithmetic import broadcast
from stages.operators.operation import Operation
from stages.operators.table import OPERATORS, layers
from tests.support.shared_models import shared_models


def test_every_layer_that_operators_become_is_one_of_the_graph() -> None:
    """Float is of any operator."""
    made = {layer.__name__ for operator in OPERATORS.values() for layer in operator.layers}
    assert made == {layer.__name__ for layer in layers()} - {"Float"}


def test_the_table_is_light() -> None:
    code = "import sys, stages.operators.table; print(sorted({'numpy', 'tvm', 'ai_edge_litert'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3), (3,)), ((2, 1), (1, 4)), ((), (5,)), ((2, 3), (2,)), ((4,), (1, 4, 1)), ((0, 2), (1, 2))],
)
def test_broadcast_is_that_of_numpy(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    try:
        wanted = np.broadcast_shapes(left, right)
    except ValueError:
        wanted = None
    assert broadcast(left, right) == wanted


def test_shapes_of_real_models_are_those_of_their_files() -> None:
    operators = 0
    for path in shared_models("**/*.tflite"):
        info = read(path.read_bytes(), path.name)
        known = all(operator.op in OPERATORS for operator in info.operators)
        for operator in info.operators if known else ():
            operation = Operation.of(operator, info)
            assert OPERATORS[operator.op].shapes(operation) == [tensor.shape for tensor in operation.outputs], (
                path.name,
                operator.index,
            )
            operators += 1
    assert operators > 100
