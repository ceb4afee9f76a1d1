"""Declared operators are complete and have the shapes of LiteRT's models."""

import numpy as np
import pytest

from stages.ir.operators.arithmetic import broadcast


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
