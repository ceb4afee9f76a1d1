"""Matrix products by constant weights, of real numbers and of integers with scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stages.import_model.onnx.operators.matrices import einsum, multiply
from stages.import_model.onnx.operators.weights import Weights, is_bias, whole_bias
from stages.import_model.onnx.translation import Node, Out, Translation
from stages.import_model.onnx.values import Array, Held, Real, Stored, plain_order
from stages.operators.operation import Refused, listed


def gemm(t: Translation, node: Node) -> None:
    """alpha * A * B + beta * C, where B and C are constants."""
    given = node.attributes
    if given.get("transA", 0):
        raise Refused("transposes its first input")
    stored, bias = t.value(node, 1), t.value(node, 2) if node.has(2) else None
    _connected(t, node, stored, bool(given.get("transB", 0)), bias, given.get("alpha", 1.0), given.get("beta", 1.0))


def matmul(t: Translation, node: Node) -> None:
    """A product with constant weights, to which a bias may be added, or of two matrices that are computed."""
    stored, bias, after = t.value(node, 1), None, t.only_reader(node.outputs[0])
    if isinstance(t.value(node, 0), Stored) or not isinstance(stored, Stored) or stored.values.ndim != 2:
        multiply(t, node)
        return
    if after is not None and after.op == "Add":
        position = 1 - list(after.inputs).index(node.outputs[0])
        other, x = t.values.get(after.inputs[position]), t.value(node, 0)
        rank = len((x.held if isinstance(x, Real) else x).shape) if not isinstance(x, Stored) else 0
        # A constant of more axes gives them to the result.
        if isinstance(other, Stored) and other.values.ndim <= rank and is_bias(other, stored.values.shape[1]):
            bias = other
            node = Node(node.index, node.copied(node.inputs, after.outputs))
            t.done.add(after.index)
    _connected(t, node, stored, False, bias, 1.0, 1.0)


def _connected(t: Translation, node: Node, stored: Any, transposed: bool, bias: Any, alpha: float, beta: float) -> None:
    for what, value in (("weights", stored), ("bias", bias)):
        if value is not None and not isinstance(value, Stored):
            raise Refused(f"takes its {what} from a computed tensor; they must be a constant")
    if stored.values.ndim != 2:
        raise Refused(f"has weights of shape {listed(stored.values.shape)}; two axes are supported")
    x, channels = t.value(node, 0), stored.values.shape[0 if transposed else 1]
    if bias is not None and not is_bias(bias, channels):
        raise Refused(f"has the bias {listed(bias.values.shape)}; one number, or one for each of {channels} outputs")
    if isinstance(x, Real) and stored.scale is not None and (alpha, beta) == (1.0, 1.0):
        out = t.destination(node, integers=True)
        if out is not None:
            weights = Weights.of(stored, 0 if transposed else 1)
            weights = weights.with_values(weights.values if transposed else weights.values.T)
            whole, rule = whole_bias(bias, x.held, weights)
            connect(t, x.held, weights, whole, out, sums="float", **rule)
            return
    out = t.destination(node, integers=False)
    assert out is not None
    values = stored.real if transposed else stored.real.T
    sums = None if bias is None else np.broadcast_to(bias.real.reshape(-1), channels) * np.float32(beta)
    connect(t, t.held(node, 0), Weights(np.ascontiguousarray(values) * np.float32(alpha)), sums, out)


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
