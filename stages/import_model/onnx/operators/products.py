"""Gemm and MatMul by constant weights, in float32 and between integers."""

from dataclasses import replace
from typing import Any

import numpy as np

from stages.import_model.onnx.operators.elementwise import broadcast_together, real_operand
from stages.import_model.onnx.operators.matrices import einsum, integers_behind, multiply, product
from stages.import_model.onnx.operators.weights import Weights, integer_bias, is_bias
from stages.import_model.onnx.translation import Node, Out, Translation, Translator, check_rank
from stages.import_model.onnx.values import Constant, Dequantized, TensorView, plain_order
from stages.ir.arrays import Array
from stages.ir.operators.operation import Refused, listed


def gemm(t: Translation, node: Node) -> None:
    """Translate Gemm: alpha * A * B + beta * C, with optional transposes.

    C broadcasts; it becomes a bias if possible.
    """
    attributes, (a, b) = node.attributes, (t.value(node, at) for at in (0, 1))
    alpha, beta = float(attributes.get("alpha", 1.0)), float(attributes.get("beta", 1.0))
    transposed = [bool(attributes.get(name, 0)) for name in ("transA", "transB")]
    bias = t.value(node, 2) if node.has(2) and beta != 0.0 else None
    if isinstance(b, Constant) and b.values.ndim != 2:
        raise Refused(f"has weights of shape {listed(b.values.shape)}; two axes are supported")
    if not isinstance(a, Constant) and isinstance(b, Constant):
        weights = b.matrix_transpose if transposed[1] else b
        if bias is None or (isinstance(bias, Constant) and is_bias(bias, weights.values.shape[1])):
            _connected(t, node, transposed[0], weights, bias, alpha, beta)
            return
    integers, out = [integers_behind(side) for side in (a, b)], t.destination(node, integers=True)
    if out is not None and bias is None and alpha == 1.0 and None not in integers:
        parts = [part for part in integers if part is not None]
    else:
        out = Out(node.outputs[0]) if bias is None else t.destination(node, integers=False)
        assert out is not None
        parts = [real_operand(t, node, at) for at in (0, 1)]
    for at, part in enumerate(parts):
        if transposed[at]:
            parts[at] = part.matrix_transpose if isinstance(part, Constant) else _columns(t, part)
    if out.quant is not None:
        t.finish(out, product(t, parts, out, sums="float"))
        return
    has_more_steps = bias is not None or alpha != 1.0
    result: TensorView | Constant = product(t, parts, Out(f"{out.name}/product" if has_more_steps else out.name))
    result = _times(t, result, alpha, out.name if bias is None else f"{out.name}/scaled")
    if bias is not None:
        scaled_bias = _times(t, real_operand(t, node, 2), beta, f"{out.name}/beta")
        tensors, order = broadcast_together(t, [result, scaled_bias], out.name)
        result = TensorView.of(t.builder.add(*tensors, activation=out.activation, name=out.name), order)
    assert isinstance(result, TensorView)
    t.finish(out, result)


def _columns(t: Translation, x: TensorView) -> TensorView:
    """Return a matrix with exchanged axes; no data moves."""
    check_rank(x, (2,))
    return t.materialized(x).transposed([1, 0])


def _times(t: Translation, x: TensorView | Constant, factor: float, name: str) -> TensorView | Constant:
    """Return real numbers multiplied by `factor`."""
    if factor == 1.0:
        return x
    if isinstance(x, Constant):
        return replace(x, values=x.values * np.float32(factor))
    constant = t.builder.constant(f"{name}/factor", np.array([factor], np.float32))
    return replace(x, tensor=t.builder.mul(x.tensor, constant, name=name))


def matmul(t: Translation, node: Node) -> None:
    """Translate MatMul, by constant weights with an optional bias, or of two computed matrices."""
    x, stored, bias, following = t.value(node, 0), t.value(node, 1), None, t.only_reader(node.outputs[0], "Add")
    if isinstance(x, Constant) or not isinstance(stored, Constant) or stored.values.ndim != 2:
        multiply(t, node)
        return
    if following is not None:
        position = 1 - list(following.inputs).index(node.outputs[0])
        addend = t.values.get(following.inputs[position])
        rank = len((x.integers if isinstance(x, Dequantized) else x).shape)
        # A constant with more axes would add them to the result.
        if isinstance(addend, Constant) and addend.values.ndim <= rank and is_bias(addend, stored.values.shape[1]):
            bias = addend
            node = Node(node.index, node.copied(node.inputs, following.outputs))
            t.done.add(following.index)
    _connected(t, node, False, stored, bias, 1.0, 1.0)


def _connected(
    t: Translation, node: Node, transposed: bool, stored: Constant, bias: Constant | None, alpha: float, beta: float
) -> None:
    """Append alpha * x * stored + beta * bias, with weights (depth, units).

    x is the first input, transposed if `transposed`.
    """
    x, channels = t.value(node, 0), stored.values.shape[1]
    if isinstance(x, Dequantized) and stored.scale is not None and alpha > 0:
        out = t.destination(node, integers=True)
        if out is not None:
            weights = Weights.of(replace(stored, scale=stored.scale * np.float32(alpha)), 1)
            weights = weights.with_values(weights.values.T)
            if bias is not None and beta != 1.0:
                bias = Constant(bias.real_values * np.float32(beta))
            sums, rule = integer_bias(bias, x.integers, weights)
            rows = _columns(t, x.integers) if transposed else x.integers
            connect(t, rows, weights, sums, out, sums="float", **rule)
            return
    out = t.destination(node, integers=False)
    assert out is not None
    values = np.ascontiguousarray(stored.real_values.T) * np.float32(alpha)
    sums = None if bias is None else np.broadcast_to(bias.real_values.reshape(-1), channels) * np.float32(beta)
    real = t.computed(node, 0)
    rows = _columns(t, real) if transposed else real
    connect(t, rows, Weights(values), sums, out)


def connect(t: Translation, x: TensorView, weights: Weights, bias: Array | None, out: Out, **rule: Any) -> None:
    """Append a fully connected layer with weights (units, depth).

    The weights take the axis order of a flattened input, so nothing is transposed.
    """
    weights = weights.centred()
    units, depth = weights.values.shape
    if not x.shape or x.shape[-1] != depth:
        raise Refused(f"has weights for rows of {depth}, which do not fit the input {listed(x.shape)}")
    if bias is not None and bias.size != units:
        bias = np.broadcast_to(bias.reshape(-1), units)
    if not x.is_plain or x.reshaped:
        places_of = x.element_offsets().reshape(-1, depth)
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
    result = t.builder.fully_connected(
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
    t.finish(out, TensorView(result, result.shape, shape, plain_order(len(result.shape))))


TRANSLATORS: dict[str, Translator] = {"Einsum": einsum, "Gemm": gemm, "MatMul": matmul}
