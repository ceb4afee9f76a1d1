"""Products of matrices that are both computed, or of which one is a constant that is no layer's weights."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from stages.import_model.onnx.operators.elementwise import with_rank
from stages.import_model.onnx.translation import Node, Out, Translation
from stages.import_model.onnx.values import Array, Held, Real, Stored, Value, plain_order
from stages.ir.models.onnx_names import LOWERED
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused, listed

_MOST = 5  # axes of TFLite's


def multiply(t: Translation, node: Node) -> None:
    """MatMul as BATCH_MATMUL, of real numbers or between integers; an exchange of the last two axes is part of it."""
    parts, out = operands_of(t, node)
    t.finish(out, product(t, parts, out, sums="float"))


def operands_of(t: Translation, node: Node) -> tuple[list[Held | Stored], Out]:
    """The two operands and where their product goes: integers where both are and a QuantizeLinear follows."""
    values = [t.value(node, at) for at in (0, 1)]
    out = t.destination(node, integers=True)
    integers = [integers_of(one) for one in values]
    if out is not None and integers[0] is not None and integers[1] is not None:
        return [part for part in integers if part is not None], out
    reals = [Stored(one.real) if isinstance(one, Stored) else t.held(node, at) for at, one in enumerate(values)]
    return list(reals), Out(node.outputs[0])


def integers_of(value: Value) -> Held | Stored | None:
    """The integers that real numbers are of, with one scale and one zero point; None where there are none."""
    if isinstance(value, Real):
        return value.held
    if not isinstance(value, Stored) or value.scale is None or value.values.dtype not in (np.int8, np.uint8):
        return None
    return value if value.scale.size == 1 and np.asarray(value.zero_point).size == 1 else None


def product(t: Translation, parts: Sequence[Held | Stored], out: Out, **rule: Any) -> Held:
    """A product of tensors of 2 to 5 axes, called as `out` is, between integers where that has a scale.

    rule: facts for later stages, of integers.
    """
    ranks = [part.values.ndim if isinstance(part, Stored) else len(part.shape) for part in parts]
    rank = max(ranks)
    if min(ranks) < 2 or rank > _MOST:
        raise Refused(f"multiplies tensors of {ranks[0]} and {ranks[1]} axes; 2 to {_MOST} are supported")
    (left, left_turned), (right, right_turned) = (
        _operand(t, part, rank, f"{out.name}/operand{at}") for at, part in enumerate(parts)
    )
    shapes = [_matrix(left, left_turned), _matrix(right, right_turned)]
    if shapes[0][-1] != shapes[1][-2]:
        raise Refused(f"multiplies {listed(shapes[0])} by {listed(shapes[1])}")
    batch = np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2])
    fields = {"adjX": left_turned, "adjY": right_turned}
    shape = (*batch, shapes[0][-2], shapes[1][-1])
    made = t.builder.emit("BATCH_MATMUL", [left, right], shape, out.quant, out.name, "BatchMatMulOptions", fields)
    if out.quant is not None:
        t.rule(clamp=out.bounds, **rule)
    return Held.of(made, plain_order(rank))


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
    given_parts, result = operands_of(t, node)
    parts = [part if isinstance(part, Stored) else t.settled(part) for part in given_parts]
    sizes: dict[str, int] = {}
    for term, part in zip(terms, parts, strict=True):
        shape = part.values.shape if isinstance(part, Stored) else part.shape
        if len(shape) != len(term) or any(sizes.setdefault(*pair) != pair[1] for pair in zip(term, shape, strict=True)):
            raise Refused(f"is '{equation}' of tensors that have other axes")
    name, matrices = result.name, []
    for at, (term, part, order) in enumerate(
        zip(terms, parts, ((batch, rows, summed), (batch, summed, columns)), strict=True)
    ):
        moved = [term.index(label) for group in order for label in group]
        laid = [prod(sizes[label] for label in group) for group in order]
        if isinstance(part, Stored):
            matrices.append(_constant(t, part, part.values.transpose(moved).reshape(laid), f"{name}/operand{at}"))
        else:
            plain = t.plain(part.transposed(moved))
            matrices.append(t.builder.reshape(plain.tensor, laid, name=f"{name}/operand{at}"))
    sides = [*matrices[0].shape[:2], matrices[1].shape[2]]
    made = t.builder.emit("BATCH_MATMUL", matrices, sides, result.quant, name, "BatchMatMulOptions")
    if result.quant is not None:
        t.rule(clamp=result.bounds, sums="float")
    labels = [*batch, *rows, *columns]
    whole = t.builder.reshape(made, [sizes[label] for label in labels], name=f"{name}/axes")
    turned = Held.of(whole, plain_order(len(labels))).transposed([labels.index(label) for label in out])
    t.finish(result, turned)


def _operand(t: Translation, part: Held | Stored, rank: int, name: str) -> tuple[Tensor, bool]:
    """A tensor of so many axes, and whether its last two are exchanged."""
    if isinstance(part, Stored):
        values = part.values.reshape((1,) * (rank - part.values.ndim) + part.values.shape)
        return _constant(t, part, values, name), False
    x, order = t.settled(with_rank(t, part, rank)), plain_order(rank)
    turned = x.order == (*order[:-2], order[-1], order[-2])
    return (x.tensor if turned else t.plain(x).tensor), turned


def _constant(t: Translation, part: Stored, values: Array, name: str) -> Tensor:
    """The values of a constant, in another order or shape, as a tensor: int8 or float32."""
    if part.scale is None:
        return t.builder.constant(name, np.ascontiguousarray(values, np.float32))
    lowered = LOWERED if values.dtype == np.uint8 else 0
    integers = np.ascontiguousarray(values.astype(np.int16) - lowered, np.int8)
    quant = float(part.scale.reshape(-1)[0]), int(np.asarray(part.zero_point).reshape(-1)[0]) - lowered
    return t.builder.constant(name, integers, *quant)


def _matrix(tensor: Tensor, turned: bool) -> tuple[int, ...]:
    *batch, rows, columns = tensor.shape
    return (*batch, columns, rows) if turned else tensor.shape
