"""Declared operators are complete and have the shapes of LiteRT's models."""

import subprocess
import sys

import numpy as np
import pytest

from stages.ir.operators.arithmetic import broadcast


def test_the_table_is_light() -> None:
    code = "import sys, stages.ir.operators.table; print(sorted({'numpy', 'tvm', 'ai_edge_litert'} & set(sys.modules)))"
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
