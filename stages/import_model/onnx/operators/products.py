"""Gemm and MatMul: matrix products by constant weights, of real numbers and of integers with scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from stages.import_model.onnx.operators.elementwise import laid_alike, part_of
from stages.import_model.onnx.operators.matrices import einsum, integers_of, multiply, product
from stages.import_model.onnx.operators.weights import Weights, is_bias, whole_bias
from stages.import_model.onnx.translation import Node, Out, Translation, check_rank
from stages.import_model.onnx.values import Array, Held, Real, Stored, plain_order
from stages.ir.operators.operation import Refused, listed


def gemm(t: Translation, node: Node) -> None:
    """alpha * A * B + beta * C, where A and B may be transposed and C broadcasts; C is a bias where it can be one."""
    given, (a, b) = node.attributes, (t.value(node, at) for at in (0, 1))
    alpha, beta = float(given.get("alpha", 1.0)), float(given.get("beta", 1.0))
    exchanged = [bool(given.get(name, 0)) for name in ("transA", "transB")]
    bias = t.value(node, 2) if node.has(2) and beta != 0.0 else None
    if isinstance(b, Stored) and b.values.ndim != 2:
        raise Refused(f"has weights of shape {listed(b.values.shape)}; two axes are supported")
    if not isinstance(a, Stored) and isinstance(b, Stored):
        weights = b.exchanged if exchanged[1] else b
        if bias is None or (isinstance(bias, Stored) and is_bias(bias, weights.values.shape[1])):
            _connected(t, node, exchanged[0], weights, bias, alpha, beta)
            return
    integers, out = [integers_of(side) for side in (a, b)], t.destination(node, integers=True)
    if out is not None and bias is None and alpha == 1.0 and None not in integers:
        parts = [part for part in integers if part is not None]
    else:
        out = Out(node.outputs[0]) if bias is None else t.destination(node, integers=False)
        assert out is not None
        parts = [part_of(t, node, at) for at in (0, 1)]
    for at, part in enumerate(parts):
        if exchanged[at]:
            parts[at] = part.exchanged if isinstance(part, Stored) else _columns(t, part)
    if out.quant is not None:
        t.finish(out, product(t, parts, out, sums="float"))
        return
    is_more = bias is not None or alpha != 1.0
    made: Held | Stored = product(t, parts, Out(f"{out.name}/product" if is_more else out.name))
    made = _times(t, made, alpha, out.name if bias is None else f"{out.name}/scaled")
    if bias is not None:
        moved = _times(t, part_of(t, node, 2), beta, f"{out.name}/beta")
        tensors, order = laid_alike(t, [made, moved], out.name)
        made = Held.of(t.builder.add(*tensors, activation=out.activation, name=out.name), order)
    assert isinstance(made, Held)
    t.finish(out, made)


def _columns(t: Translation, x: Held) -> Held:
    """A matrix with its axes exchanged: nothing is moved."""
    check_rank(x, (2,))
    return t.settled(x).transposed([1, 0])


def _times(t: Translation, x: Held | Stored, factor: float, name: str) -> Held | Stored:
    """Real numbers times a number."""
    if factor == 1.0:
        return x
    if isinstance(x, Stored):
        return replace(x, values=x.values * np.float32(factor))
    constant = t.builder.constant(f"{name}/factor", np.array([factor], np.float32))
    return replace(x, tensor=t.builder.mul(x.tensor, constant, name=name))


def matmul(t: Translation, node: Node) -> None:
    """A product with constant weights, to which a bias may be added, or of two matrices that are computed."""
    x, stored, bias, after = t.value(node, 0), t.value(node, 1), None, t.only_reader(node.outputs[0])
    if isinstance(x, Stored) or not isinstance(stored, Stored) or stored.values.ndim != 2:
        multiply(t, node)
        return
    if after is not None and after.op == "Add":
        position = 1 - list(after.inputs).index(node.outputs[0])
        other = t.values.get(after.inputs[position])
        rank = len((x.held if isinstance(x, Real) else x).shape)
        # A constant of more axes gives them to the result.
        if isinstance(other, Stored) and other.values.ndim <= rank and is_bias(other, stored.values.shape[1]):
            bias = other
            node = Node(node.index, node.copied(node.inputs, after.outputs))
            t.done.add(after.index)
    _connected(t, node, False, stored, bias, 1.0, 1.0)


def _connected(
    t: Translation, node: Node, exchanged: bool, stored: Stored, bias: Stored | None, alpha: float, beta: float
) -> None:
    """alpha * x * stored + beta * bias, by weights (depth, units); x is the first input, perhaps transposed."""
    x, channels = t.value(node, 0), stored.values.shape[1]
    if isinstance(x, Real) and stored.scale is not None and alpha > 0:
        out = t.destination(node, integers=True)
        if out is not None:
            weights = Weights.of(replace(stored, scale=stored.scale * np.float32(alpha)), 1)
            weights = weights.with_values(weights.values.T)
            if bias is not None and beta != 1.0:
                bias = Stored(bias.real * np.float32(beta))
            whole, rule = whole_bias(bias, x.held, weights)
            rows = _columns(t, x.held) if exchanged else x.held
            connect(t, rows, weights, whole, out, sums="float", **rule)
            return
    out = t.destination(node, integers=False)
    assert out is not None
    values = np.ascontiguousarray(stored.real.T) * np.float32(alpha)
    sums = None if bias is None else np.broadcast_to(bias.real.reshape(-1), channels) * np.float32(beta)
    real = t.held(node, 0)
    rows = _columns(t, real) if exchanged else real
    connect(t, rows, Weights(values), sums, out)


def connect(t: Translation, x: Held, weights: Weights, bias: Array | None, out: Out, **rule: Any) -> None:
    """weights (units, depth). The order of what was flattened goes into the weights: nothing is transposed."""
    weights = weights.centred()
    units, depth = weights.values.shape
    if not x.shape or x.shape[-1] != depth:
        raise Refused(f"has weights for rows of {depth} and the input {listed(x.shape)}")
    if bias is not None and bias.size != units:
        bias = np.broadcast_to(bias.reshape(-1), units)
    if not x.is_plain or x.reshaped:
        places_of = x.places().reshape(-1, depth)
        rows = np.arange(len(places_of))[:, None] * depth
        if ((places_of - rows) == places_of[:1]).all() and (places_of[0] < depth).all():
            values = np.empty_like(weights.values)
            values[:, places_of[0]] = weights.values
            weights, tensor = weights.with_values(values), x.tensor
        else:
            tensor = t.plain(x).tensor
    else:
        tensor = x.tensor
    keep, parts = len(x.shape) > 2, weights.parts
    if len(parts) > 1:  # rows several times side by side: the products are added up
        tensor = tensor if tensor.shape == x.shape else t.builder.reshape(tensor, x.shape, name=f"{out.name}/rows")
        tensor = t.builder.concatenation([tensor] * len(parts), len(x.shape) - 1, name=f"{out.name}/several")
        weights = weights.with_values(np.concatenate(parts, axis=1))
    elif keep and tensor.shape != x.shape:  # rows of `depth` lie one behind another: only their axes are others
        tensor = t.builder.reshape(tensor, x.shape, name=f"{out.name}/rows")
    made = t.builder.fully_connected(
        tensor,
        np.ascontiguousarray(weights.values),
        None if bias is None else np.ascontiguousarray(bias).reshape(-1),
        **weights.options(),
        activation=out.activation,
        keep_num_dims=keep,
        out=out.quant,
        name=out.name,
    )
    t.rule(**rule)
    shape = (*x.shape[:-1], units)
    t.finish(out, Held(made, made.shape, shape, plain_order(len(made.shape))))


TRANSLATORS: dict[str, Callable[[Translation, Node], None]] = {"Einsum": einsum, "Gemm": gemm, "MatMul": matmul}
