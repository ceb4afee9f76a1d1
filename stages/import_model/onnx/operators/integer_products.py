"""ConvInteger and MatMulInteger with float32 operators that scale their sums.

    ConvInteger(x, w) -> Cast to float32 -> Mul by constants [-> Add a constant] [-> Relu] -> QuantizeLinear

is a convolution between integers; the product of the constants is the scale of its sums.
"""

import numpy as np

from stages.import_model.onnx.operators.convolution import convolve
from stages.import_model.onnx.operators.products import connect
from stages.import_model.onnx.operators.weights import Weights, integer_bias
from stages.import_model.onnx.translation import Node, Out, Translation, Translator
from stages.import_model.onnx.values import Constant, TensorView
from stages.ir.arrays import Array
from stages.ir.operators.operation import Refused, listed

_HINT = "It must be followed by Cast, Mul by a constant, optional Add of a constant, optional Relu, and QuantizeLinear."


def _following_operators(t: Translation, node: Node, axes: int) -> tuple[Array, Constant | None, Out]:
    """Return the scale of the sums, the float bias, and the destination.

    axes: number of axes after the channel axis. Raises Refused for other operators.
    """
    passed, previous, scale, bias = [], node, np.ones((), np.float32), None
    following = t.only_reader(node.outputs[0], "Cast")
    if following is None or following.attributes.get("to") != 1:
        raise Refused("has an integer result that no Cast converts to float32", _HINT)
    while following is not None:
        passed.append(following.index)
        if following.op != "Cast":
            position = 1 - list(following.inputs).index(previous.outputs[0])
            constant = t.values.get(following.inputs[position])
            if not isinstance(constant, Constant) or bias is not None:
                raise Refused("is scaled by a computed tensor, as dynamic quantization does", _HINT)
            if (
                constant.values.size > 1
                and constant.values.size != (*(1,) * (axes + 1), *constant.values.shape)[-1 - axes]
            ):
                shape = listed(constant.values.shape)
                raise Refused(f"is followed by the constant {shape}, which does not have one value per channel")
            if following.op == "Mul":
                scale = scale * constant.real_values.astype(np.float32)
            else:
                bias = constant
        previous, following = following, t.only_reader(following.outputs[0], "Cast", "Mul", "Add")
    out = t.destination(previous, integers=True)
    if out is None or not (scale > 0).all():
        raise Refused("has a result that no QuantizeLinear quantizes", _HINT)
    return scale.reshape(-1), bias, Out(out.name, out.activation, out.quant, (*passed, *out.passed))


def _read(t: Translation, node: Node) -> TensorView:
    x = t.value(node, 0)
    if not isinstance(x, TensorView) or x.tensor.dtype != "int8" or not x.tensor.scale:
        raise Refused(f"reads '{node.inputs[0]}', which is not an integer tensor with a scale")
    unsigned = t.constant(node, 2, "the zero point") if node.has(2) else np.zeros((), np.int8)
    lowered = 128 if unsigned.dtype == np.uint8 else 0
    if int(unsigned.reshape(-1)[0]) - lowered != x.tensor.zero_point[0] and node.has(2):
        raise Refused(f"reads '{node.inputs[0]}' with another zero point than its producer's")
    return x


def _weights(t: Translation, node: Node, x: TensorView, scale: Array, axis: int) -> Weights:
    stored = t.value(node, 1)
    if not isinstance(stored, Constant):
        raise Refused(f"takes its weights from '{node.inputs[1]}', a computed tensor; they must be a constant")
    zero = t.constant(node, 3, "the zero point") if node.has(3) else np.zeros((), stored.values.dtype)
    scales = scale / np.float32(x.tensor.scale[0])
    points = np.broadcast_to(zero.reshape(-1), max(scales.size, zero.size))
    return Weights.of(Constant(stored.values, np.broadcast_to(scales, points.shape), points, axis), axis)


def conv(t: Translation, node: Node) -> None:
    """Translate ConvInteger(x, w, zero of x, zero of w)."""
    x = _read(t, node)
    scale, real, out = _following_operators(t, node, len(x.shape) - 2)
    weights = _weights(t, node, x, scale, 0)
    bias, rule = integer_bias(real, x, weights)
    convolve(t, node, x, weights, bias, out, sums="float", **rule)


def matmul(t: Translation, node: Node) -> None:
    """Translate MatMulInteger(a, b, zero of a, zero of b), with weights of two axes."""
    scale, real, out = _following_operators(t, node, 0)
    x = _read(t, node)
    weights = _weights(t, node, x, scale, 1)
    weights = weights.with_values(weights.values.T)
    bias, rule = integer_bias(real, x, weights)
    connect(t, x, weights, bias, out, sums="float", **rule)


TRANSLATORS: dict[str, Translator] = {"ConvInteger": conv, "MatMulInteger": matmul}
