"""Products of matrices that are both computed, or of which one is a constant that is no layer's weights."""

from __future__ import annotations

import numpy as np

from stages.import_model.onnx.operators.elementwise import with_rank
from stages.import_model.onnx.translation import Node, Translation
from stages.import_model.onnx.values import Held, Stored, plain_order
from stages.models.tflite_writer import Tensor
from stages.operators.operation import Refused, listed

_MOST = 5  # axes of TFLite's


def multiply(t: Translation, node: Node) -> None:
    """MatMul as BATCH_MATMUL, in float32; an exchange of the last two axes in front of it is part of it."""
    values = [t.value(node, at) for at in (0, 1)]
    parts = [Stored(one.real) if isinstance(one, Stored) else t.held(node, at) for at, one in enumerate(values)]
    ranks = [part.values.ndim if isinstance(part, Stored) else len(part.shape) for part in parts]
    rank = max(ranks)
    if min(ranks) < 2 or rank > _MOST:
        raise Refused(f"multiplies tensors of {ranks[0]} and {ranks[1]} axes; 2 to {_MOST} are supported")
    name = node.outputs[0]
    (left, left_turned), (right, right_turned) = (
        _operand(t, part, rank, f"{name}/operand{at}") for at, part in enumerate(parts)
    )
    shapes = [_matrix(left, left_turned), _matrix(right, right_turned)]
    if shapes[0][-1] != shapes[1][-2]:
        raise Refused(f"multiplies {listed(shapes[0])} by {listed(shapes[1])}")
    batch = np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2])
    fields = {"adjX": left_turned, "adjY": right_turned}
    shape = (*batch, shapes[0][-2], shapes[1][-1])
    made = t.builder.emit("BATCH_MATMUL", [left, right], shape, None, name, "BatchMatMulOptions", fields)
    t.bind(name, Held.of(made, plain_order(rank)))


def _operand(t: Translation, part: Held | Stored, rank: int, name: str) -> tuple[Tensor, bool]:
    """A tensor of so many axes, and whether its last two are exchanged."""
    if isinstance(part, Stored):
        values = part.values.reshape((1,) * (rank - part.values.ndim) + part.values.shape)
        return t.builder.constant(name, np.ascontiguousarray(values, np.float32)), False
    x, order = t.settled(with_rank(t, part, rank)), plain_order(rank)
    turned = x.order == (*order[:-2], order[-1], order[-2])
    return (x.tensor if turned else t.plain(x).tensor), turned


def _matrix(tensor: Tensor, turned: bool) -> tuple[int, ...]:
    *batch, rows, columns = tensor.shape
    return (*batch, columns, rows) if turned else tensor.shape
