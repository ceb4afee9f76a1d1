"""Pieces of two tensors that transfers lay side by side, and constants that come while no layer waits for these."""

from __future__ import annotations

import numpy as np
import pytest

from stages.accelerators.tiles import Span, Tile
from stages.graph import Graph, Layer, LayerView, Tensor
from stages.offload.pieces import lay
from stages.operators.arithmetic import Add
from tests.support.offloading import Memory, apart


def addition(shape: tuple[int, ...]) -> LayerView:
    fields = {"zero_points": (0, 0), "left_shift": 20, "multipliers": (1, 1), "shifts": (0, 0)}
    op = Add(
        op="add", output_multiplier=1, output_shift=0, output_zero_point=0, act_min=-128, act_max=127, **fields
    )  # fmt: skip
    tensors = {name: Tensor(name=name, shape=shape, dtype="int8") for name in "abc"}
    layer = Layer(index=0, name="c", op=op, inputs=("a", "b"), outputs=("c",))
    return Graph(tensors, [layer], ["a", "b"], ["c"]).view(layer)


@pytest.mark.parametrize(("first", "end"), [(0, 6), (0, 2), (2, 4), (4, 6)])
def test_pieces_lie_side_by_side(first: int, end: int) -> None:
    view, rng = addition((1, 6, 4, 24)), np.random.default_rng(4)
    a, b = (rng.integers(0, 256, (6, 96)).astype(np.uint8) for _ in range(2))
    size = (end - first) * 96
    memory = Memory({"input:0": a.reshape(-1), "input:1": b.reshape(-1), "both": np.zeros(2 * size, np.uint8)})
    for transfer in lay(view, Tile(Span(first, end), Span(0, 24)), "both", 16):
        for one in apart(transfer):
            source = memory.at(one.source, one.runs, one.bytes, one.source_stride)
            memory.bytes["both"][memory.at(one.to, one.runs, one.bytes, one.to_stride)] = memory.bytes[one.source.role][
                source
            ]
    pieces = [values[first:end].reshape(-1, 16) for values in (a, b)]
    assert np.array_equal(memory.bytes["both"].reshape(-1, 2, 16), np.stack(pieces, axis=1))
