"""ConvInteger and MatMulInteger: sums of integers that float32 operators scale behind them.

    ConvInteger(x, w) -> Cast to float32 -> Mul by constants [-> Add a constant] [-> Relu] -> QuantizeLinear

is a convolution of integers: the product of the constants is the scale of its sums.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stages.import_model.onnx.operators.products import connect
from stages.import_model.onnx.operators.weights import Weights, whole_bias
from stages.import_model.onnx.operators.windows import convolve
from stages.import_model.onnx.translation import Node, Out, Translation
from stages.import_model.onnx.values import Array, Held, Stored
from stages.ir.operators.operation import Refused, listed

_HINT = "Behind it stand Cast, Mul by a constant, perhaps Add of a constant and Relu, and QuantizeLinear."


def _behind(t: Translation, node: Node, axes: int) -> tuple[Array, Stored | None, Out]:
    """The scale of the sums, the bias in real numbers, and where the result goes. Refused for anything else.

    axes: how many of the result stand behind that of its channels.
    """
    passed, last, scale, bias = [], node, np.ones((), np.float32), None
    after = t.only_reader(node.outputs[0])
    if after is None or after.op != "Cast" or after.attributes.get("to") != 1:
        raise Refused("gives integers that no Cast makes float32", _HINT)
    while after is not None and after.op in ("Cast", "Mul", "Add"):
        passed.append(after.index)
        if after.op != "Cast":
            position = 1 - list(after.inputs).index(last.outputs[0])
            other = t.values.get(after.inputs[position])
            if not isinstance(other, Stored) or bias is not None:
                raise Refused("is scaled by a computed tensor, as dynamic quantization does", _HINT)
            if other.values.size > 1 and other.values.size != (*(1,) * (axes + 1), *other.values.shape)[-1 - axes]:
                raise Refused(
                    f"has the constant {listed(other.values.shape)} behind it, which is not one for a channel"
                )
            if after.op == "Mul":
                scale = scale * other.real.astype(np.float32)
            else:
                bias = other
        last, after = after, t.only_reader(after.outputs[0])
    out = t.destination(last, integers=True)
    if out is None or not (scale > 0).all():
        raise Refused("has results that no QuantizeLinear makes integers", _HINT)
    return scale.reshape(-1), bias, Out(out.name, out.activation, out.quant, (*passed, *out.passed))


def _read(t: Translation, node: Node) -> Held:
    x = t.value(node, 0)
    if not isinstance(x, Held) or x.tensor.dtype != "int8" or not x.tensor.scale:
        raise Refused(f"reads '{node.inputs[0]}', which is no tensor of integers with a scale")
    unsigned = t.stored(node, 2, "the zero point") if node.has(2) else np.zeros((), np.int8)
    lowered = 128 if unsigned.dtype == np.uint8 else 0
    if int(unsigned.reshape(-1)[0]) - lowered != x.tensor.zero_point[0] and node.has(2):
        raise Refused(f"reads '{node.inputs[0]}' by another zero point than it was made with")
    return x


def _weights(t: Translation, node: Node, x: Held, scale: Array, axis: int) -> Weights:
    stored = t.value(node, 1)
    if not isinstance(stored, Stored):
        raise Refused(f"takes its weights from '{node.inputs[1]}', a computed tensor; they must be a constant")
    zero = t.stored(node, 3, "the zero point") if node.has(3) else np.zeros((), stored.values.dtype)
    scales = scale / np.float32(x.tensor.scale[0])
    points = np.broadcast_to(zero.reshape(-1), max(scales.size, zero.size))
    return Weights.of(Stored(stored.values, np.broadcast_to(scales, points.shape), points, axis), axis)


def conv(t: Translation, node: Node) -> None:
    """ConvInteger(x, w, zero of x, zero of w)."""
    x = _read(t, node)
    scale, real, out = _behind(t, node, len(x.shape) - 2)
    weights = _weights(t, node, x, scale, 0)
    bias, rule = whole_bias(real, x, weights)
    convolve(t, node, x, weights, bias, out, sums="float", **rule)


def matmul(t: Translation, node: Node) -> None:
    """MatMulInteger(a, b, zero of a, zero of b), by weights of two axes."""
    scale, real, out = _behind(t, node, 0)
    x = _read(t, node)
    weights = _weights(t, node, x, scale, 1)
    weights = weights.with_values(weights.values.T)
    bias, rule = whole_bias(real, x, weights)
    connect(t, x, weights, bias, out, sums="float", **rule)


TRANSLATORS: dict[str, Callable[[Translation, Node], None]] = {"ConvInteger": conv, "MatMulInteger": matmul}
