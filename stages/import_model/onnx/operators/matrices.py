"""Products of matrices that are both computed, or of which one is a constant that is no layer's weights."""

from __future__ import annotations

from math import prod

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


def einsum(t: Translation, node: Node) -> None:
    """A product of two tensors, summed over what both have and the result has not, as one of matrices."""
    equation = "".join(str(node.attributes["equation"]).split())
    given, arrow, out = equation.partition("->")
    terms = given.split(",")
    once = all(len({*term}) == len(term) and term.isalpha() for term in (*terms, out))
    if not arrow or len(terms) != 2 or not once:
        raise Refused(f"is '{equation}'; two tensors, with each axis named once, are supported")
    first, second = terms
    batch = [label for label in first if label in second and label in out]
    summed = [label for label in first if label in second and label not in out]
    rows, columns = ([label for label in term if label in out and label not in batch] for term in terms)
    if sorted((*batch, *rows, *summed)) != sorted(first) or sorted((*batch, *summed, *columns)) != sorted(second):
        raise Refused(f"is '{equation}', which sums one tensor alone")
    values = [t.value(node, at) for at in (0, 1)]
    parts = [
        Stored(one.real) if isinstance(one, Stored) else t.settled(t.held(node, at)) for at, one in enumerate(values)
    ]
    sizes: dict[str, int] = {}
    for term, part in zip(terms, parts, strict=True):
        shape = part.values.shape if isinstance(part, Stored) else part.shape
        if len(shape) != len(term) or any(sizes.setdefault(*pair) != pair[1] for pair in zip(term, shape, strict=True)):
            raise Refused(f"is '{equation}' of tensors that have other axes")
    name, matrices = node.outputs[0], []
    for at, (term, part, order) in enumerate(
        zip(terms, parts, ((batch, rows, summed), (batch, summed, columns)), strict=True)
    ):
        moved = [term.index(label) for group in order for label in group]
        laid = [prod(sizes[label] for label in group) for group in order]
        if isinstance(part, Stored):
            values_laid = np.ascontiguousarray(part.values.transpose(moved), np.float32).reshape(laid)
            matrices.append(t.builder.constant(f"{name}/operand{at}", values_laid))
        else:
            plain = t.plain(part.transposed(moved))
            matrices.append(t.builder.reshape(plain.tensor, laid, name=f"{name}/operand{at}"))
    product = [*matrices[0].shape[:2], matrices[1].shape[2]]
    made = t.builder.emit("BATCH_MATMUL", matrices, product, None, name, "BatchMatMulOptions")
    labels = [*batch, *rows, *columns]
    whole = t.builder.reshape(made, [sizes[label] for label in labels], name=f"{name}/axes")
    t.bind(name, Held.of(whole, plain_order(len(labels))).transposed([labels.index(label) for label in out]))


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
