"""Products of two computed matrices, or with a constant that is not a layer's weights."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from stages.import_model.onnx.operators.elementwise import with_rank
from stages.import_model.onnx.translation import Node, Out, Translation
from stages.import_model.onnx.values import Constant, Dequantized, TensorView, Value, plain_order
from stages.ir.arrays import Array
from stages.ir.models.onnx_names import LOWERED
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused, listed

_MOST = 5  # axes in TFLite


def multiply(t: Translation, node: Node) -> None:
    """Translate MatMul as BATCH_MATMUL, with an exchange of the last two axes folded in."""
    parts, out = operands_of(t, node)
    t.finish(out, product(t, parts, out, sums="float"))


def operands_of(t: Translation, node: Node) -> tuple[list[TensorView | Constant], Out]:
    """Return the two operands and the destination of their product.

    They are integers if both have scales and a QuantizeLinear follows.
    """
    values = [t.value(node, at) for at in (0, 1)]
    out = t.destination(node, integers=True)
    integers = [integers_behind(value) for value in values]
    if out is not None and integers[0] is not None and integers[1] is not None:
        return [part for part in integers if part is not None], out
    reals = [
        Constant(value.real_values) if isinstance(value, Constant) else t.computed(node, at)
        for at, value in enumerate(values)
    ]
    return list(reals), Out(node.outputs[0])


def integers_behind(value: Value) -> TensorView | Constant | None:
    """Return the integers that `value` dequantizes by one scale and zero point, else None."""
    if isinstance(value, Dequantized):
        return value.integers
    if not isinstance(value, Constant) or value.scale is None or value.values.dtype not in (np.int8, np.uint8):
        return None
    return value if value.scale.size == 1 and np.asarray(value.zero_point).size == 1 else None


def product(t: Translation, parts: Sequence[TensorView | Constant], out: Out, **rule: Any) -> TensorView:
    """Append a product of tensors with 2 to 5 axes, between integers if `out` has a scale.

    rule: arithmetic for later stages, for integers.
    """
    ranks = [part.values.ndim if isinstance(part, Constant) else len(part.shape) for part in parts]
    rank = max(ranks)
    if min(ranks) < 2 or rank > _MOST:
        raise Refused(f"multiplies tensors of {ranks[0]} and {ranks[1]} axes; 2 to {_MOST} are supported")
    (lhs, lhs_transposed), (rhs, rhs_transposed) = (
        _operand(t, part, rank, f"{out.name}/operand{at}") for at, part in enumerate(parts)
    )
    shapes = [_matrix(lhs, lhs_transposed), _matrix(rhs, rhs_transposed)]
    if shapes[0][-1] != shapes[1][-2]:
        raise Refused(f"multiplies {listed(shapes[0])} by {listed(shapes[1])}")
    batch = np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2])
    fields = {"adjX": lhs_transposed, "adjY": rhs_transposed}
    shape = (*batch, shapes[0][-2], shapes[1][-1])
    result = t.builder.emit("BATCH_MATMUL", [lhs, rhs], shape, out.quant, out.name, "BatchMatMulOptions", fields)
    if out.quant is not None:
        t.rule(clamp=out.bounds, **rule)
    return TensorView.of(result, plain_order(rank))


def einsum(t: Translation, node: Node) -> None:
    """Translate Einsum of two tensors as a product of matrices.

    It sums over the axes that both inputs have and the result lacks.
    """
    equation = "".join(str(node.attributes["equation"]).split())
    sources, arrow, out = equation.partition("->")
    terms = sources.split(",")
    once = all(len({*term}) == len(term) and term.isalpha() for term in (*terms, out))
    if not arrow or len(terms) != 2 or not once:
        raise Refused(f"is '{equation}'; two tensors, with each axis named once, are supported")
    first, second = terms
    batch = [label for label in first if label in second and label in out]
    summed = [label for label in first if label in second and label not in out]
    rows, columns = ([label for label in term if label in out and label not in batch] for term in terms)
    if sorted((*batch, *rows, *summed)) != sorted(first) or sorted((*batch, *summed, *columns)) != sorted(second):
        raise Refused(f"is '{equation}', which sums an axis that only one tensor has; this is not supported")
    raw_parts, result = operands_of(t, node)
    parts = [part if isinstance(part, Constant) else t.materialized(part) for part in raw_parts]
    sizes: dict[str, int] = {}
    for term, part in zip(terms, parts, strict=True):
        shape = part.values.shape if isinstance(part, Constant) else part.shape
        if len(shape) != len(term) or any(sizes.setdefault(*pair) != pair[1] for pair in zip(term, shape, strict=True)):
            raise Refused(f"is '{equation}', which does not fit the axes of its tensors")
    name, matrices = result.name, []
    for at, (term, part, order) in enumerate(
        zip(terms, parts, ((batch, rows, summed), (batch, summed, columns)), strict=True)
    ):
        moved = [term.index(label) for group in order for label in group]
        shape_3d = [prod(sizes[label] for label in group) for group in order]
        if isinstance(part, Constant):
            matrices.append(_constant(t, part, part.values.transpose(moved).reshape(shape_3d), f"{name}/operand{at}"))
        else:
            plain = t.plain(part.transposed(moved))
            matrices.append(t.builder.reshape(plain.tensor, shape_3d, name=f"{name}/operand{at}"))
    sides = [*matrices[0].shape[:2], matrices[1].shape[2]]
    matrix_product = t.builder.emit("BATCH_MATMUL", matrices, sides, result.quant, name, "BatchMatMulOptions")
    if result.quant is not None:
        t.rule(clamp=result.bounds, sums="float")
    labels = [*batch, *rows, *columns]
    unflattened = t.builder.reshape(matrix_product, [sizes[label] for label in labels], name=f"{name}/axes")
    permuted = TensorView.of(unflattened, plain_order(len(labels))).transposed([labels.index(label) for label in out])
    t.finish(result, permuted)


def _operand(t: Translation, part: TensorView | Constant, rank: int, name: str) -> tuple[Tensor, bool]:
    """Return a tensor with `rank` axes, and whether its last two are exchanged."""
    if isinstance(part, Constant):
        values = part.values.reshape((1,) * (rank - part.values.ndim) + part.values.shape)
        return _constant(t, part, values, name), False
    x, order = t.materialized(with_rank(t, part, rank)), plain_order(rank)
    transposed = x.order == (*order[:-2], order[-1], order[-2])
    return (x.tensor if transposed else t.plain(x).tensor), transposed


def _constant(t: Translation, part: Constant, values: Array, name: str) -> Tensor:
    """Return a constant's reordered values as an int8 or float32 tensor."""
    if part.scale is None:
        return t.builder.constant(name, np.ascontiguousarray(values, np.float32))
    lowered = LOWERED if values.dtype == np.uint8 else 0
    integers = np.ascontiguousarray(values.astype(np.int16) - lowered, np.int8)
    quant = float(part.scale.reshape(-1)[0]), int(np.asarray(part.zero_point).reshape(-1)[0]) - lowered
    return t.builder.constant(name, integers, *quant)


def _matrix(tensor: Tensor, transposed: bool) -> tuple[int, ...]:
    *batch, rows, columns = tensor.shape
    return (*batch, columns, rows) if transposed else tensor.shape
