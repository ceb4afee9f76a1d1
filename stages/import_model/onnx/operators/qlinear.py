"""Operators on integers with scales as inputs, such as QLinearConv."""

import numpy as np

from stages.import_model.onnx.operators.convolution import convolve
from stages.import_model.onnx.operators.elementwise import concat_integers, emit_integer_pair
from stages.import_model.onnx.operators.matrices import product
from stages.import_model.onnx.operators.pools import average_integers
from stages.import_model.onnx.operators.products import connect
from stages.import_model.onnx.operators.reductions import emit_reduction
from stages.import_model.onnx.operators.softmax import integer_softmax, softmax_rows
from stages.import_model.onnx.operators.tables import integer_results
from stages.import_model.onnx.operators.weights import Weights
from stages.import_model.onnx.translation import MICROSOFT, Node, Out, Translation, Translator
from stages.import_model.onnx.values import Constant, TensorView
from stages.ir.models.onnx_names import LOWERED
from stages.ir.operators.operation import Refused

_OTHER_FORM = "Quantize with quant_format=QDQ, or remove {} from op_types_to_quantize."


def _read(t: Translation, node: Node, at: int) -> TensorView:
    """Return computed integers, with scale and zero point in the next two inputs.

    Raises Refused if these differ from the tensor's.
    """
    x = t.value(node, at)
    if not isinstance(x, TensorView) or x.tensor.dtype != "int8":
        raise Refused(f"reads '{node.inputs[at]}', which is not a computed integer tensor")
    quant = t.parameters(node, at + 1, at + 2)
    if (x.tensor.scale[0], x.tensor.zero_point[0]) != quant:
        raise Refused(f"reads '{node.inputs[at]}' with the scale {quant[0]:g}; its producer uses {x.tensor.scale[0]:g}")
    return x


def _stored(t: Translation, node: Node, at: int, axis: int) -> Constant:
    """Return a constant with the scales and zero points of the next two inputs, along `axis`."""
    values = t.value(node, at)
    if not isinstance(values, Constant):
        raise Refused(f"takes its weights from '{node.inputs[at]}', a computed tensor; they must be a constant")
    scale = t.constant(node, at + 1, "the scale").astype(np.float32)
    zero_point = t.constant(node, at + 2, "the zero point") if node.has(at + 2) else np.zeros((), values.values.dtype)
    points = np.broadcast_to(zero_point.reshape(-1), scale.reshape(-1).shape)
    return Constant(values.values, scale.reshape(-1), points, axis)


def operand(t: Translation, node: Node, at: int, axis: int = 0) -> TensorView | Constant:
    """Return integers, computed or constant, with scale and zero point in the next two inputs.

    axis: along which a constant may have several scales.
    """
    return _stored(t, node, at, axis) if isinstance(t.value(node, at), Constant) else _read(t, node, at)


def declared_output(t: Translation, node: Node, scale_at: int) -> Out:
    """Return the first result as int8, with scale and zero point in two inputs."""
    return Out(node.outputs[0], "none", t.parameters(node, scale_at, scale_at + 1))


def _bias(t: Translation, node: Node, at: int) -> np.ndarray | None:
    return t.constant(node, at, "the bias").astype(np.int32).reshape(-1) if node.has(at) else None


def conv(t: Translation, node: Node) -> None:
    """Translate QLinearConv(x, scale, zero, w, scale, zero, scale, zero, bias)."""
    weights = Weights.of(_stored(t, node, 3, 0), 0)
    convolve(t, node, _read(t, node, 0), weights, _bias(t, node, 8), declared_output(t, node, 6), sums="integer")


def matmul(t: Translation, node: Node) -> None:
    """Translate QLinearMatMul, by a weight matrix, or of two tensors with one scale each."""
    sides, out = [operand(t, node, at, axis) for at, axis in ((0, 0), (3, 1))], declared_output(t, node, 6)
    x, stored = sides
    if isinstance(x, Constant) or not isinstance(stored, Constant) or stored.values.ndim != 2:
        for side in sides:
            if isinstance(side, Constant) and side.scale is not None and side.scale.size != 1:
                raise Refused(f"has {side.scale.size} scales for an operand; only a matrix of weights may have several")
        t.finish(out, product(t, sides, out, sums="integer"))
        return
    weights = Weights.of(stored, 1)
    connect(t, x, weights.with_values(weights.values.T), None, out, sums="integer")


def gemm(t: Translation, node: Node) -> None:
    """Translate QGemm(a, scale, zero, b, scale, zero, c, scale, zero) with integer results."""
    if node.attributes.get("transA", 0) or node.attributes.get("alpha", 1.0) != 1.0:
        raise Refused("transposes its first input, or has an alpha other than 1; neither is supported")
    if not node.has(7):
        raise Refused("has a float result; only integer results are supported")
    transposed = bool(node.attributes.get("transB", 0))
    weights = Weights.of(_stored(t, node, 3, 0 if transposed else 1), 0 if transposed else 1)
    weights = weights.with_values(weights.values if transposed else weights.values.T)
    connect(t, _read(t, node, 0), weights, _bias(t, node, 6), declared_output(t, node, 7), sums="integer")


def _binary(op: str) -> Translator:
    """Return the translator of QLinearAdd or QLinearMul.

    Inputs: a, scale, zero, b, scale, zero, scale, zero.
    """

    def translate(t: Translation, node: Node) -> None:
        parts = [operand(t, node, at) for at in (0, 3)]
        unsigned = not node.has(7) or t.constant(node, 7, "the zero point").dtype == np.uint8
        if not emit_integer_pair(t, op, parts, declared_output(t, node, 6), LOWERED if unsigned else 0):
            raise Refused(
                "has scales for which integer arithmetic cannot match ONNX Runtime", _OTHER_FORM.format(op.capitalize())
            )

    return translate


def average_pool(t: Translation, node: Node) -> None:
    """Translate QLinearAveragePool."""
    if node.attributes.get("channels_last", 0):
        raise Refused("has channels_last: 1; only 0 is supported")
    if not average_integers(t, node, _read(t, node, 0), declared_output(t, node, 3), sums="integer"):
        raise Refused("has windows with too many different divisors", _OTHER_FORM.format("AveragePool"))


def global_average_pool(t: Translation, node: Node) -> None:
    """Translate QLinearGlobalAveragePool."""
    if node.attributes.get("channels_last", 0):
        raise Refused("has channels_last: 1; only 0 is supported")
    x = t.materialized(_read(t, node, 0))
    emit_reduction(t, declared_output(t, node, 3), "MEAN", x, list(range(2, len(x.shape))), keep=True, sums="integer")


def concat(t: Translation, node: Node) -> None:
    """Translate QLinearConcat(scale, zero, x, scale, zero, x, scale, zero, ...)."""
    parts = [_read(t, node, at) for at in range(2, len(node.inputs), 3)]
    concat_integers(t, node, parts, declared_output(t, node, 0))


def function(t: Translation, node: Node) -> None:
    """Translate QLinearSigmoid and QLinearLeakyRelu as tables of ONNX Runtime's results."""
    x, out = _read(t, node, 0), declared_output(t, node, 3)
    assert out.quant is not None
    result = t.builder.quantize(x.tensor, "int8", out.quant, name=out.name)
    t.rule(
        table=integer_results(t, node, t.constant(node, 4, "the zero point").dtype),
        function=node.proto.op_type.removeprefix("QLinear").lower(),
    )
    t.finish(out, TensorView(result, x.base, x.shape, x.order))


def softmax(t: Translation, node: Node) -> None:
    """Translate QLinearSoftmax(x, scale, zero, scale, zero).

    ONNX Runtime's table of exponentials: entry d is exp(bits - d * scale), where `bits` keeps the sum of a row within
    float32.
    """
    x, opset = _read(t, node, 0), int(node.attributes.get("opset", 1))
    out = declared_output(t, node, 3)
    rows, shape = softmax_rows(t, node, x, -1, opset)
    scale, count = float(np.float32(x.tensor.scale[0])), rows.tensor.shape[-1]
    most = np.log(np.finfo(np.float32).max / np.float32(count))
    bits = max(0.0, float(most) - 5.0)
    powers = np.exp((np.arange(255, -1, -1, dtype=np.float64) - 255 + bits / scale) * scale).astype(np.float32)
    factor = float(np.floor(np.float32(1.0) / np.float32(t.constant(node, 3, "the scale").reshape(-1)[0])))
    if float(powers[0]) * factor > float(np.finfo(np.float32).max):
        raise Refused(f"has the scale {1 / factor:g}: its products exceed float32", _OTHER_FORM.format("Softmax"))
    integer_softmax(t, rows, shape, out, exp=[float(power) for power in powers], factor=factor)


TRANSLATORS: dict[str, Translator] = {
    "QLinearConv": conv,
    "QLinearMatMul": matmul,
    f"{MICROSOFT}.QGemm": gemm,
    f"{MICROSOFT}.QLinearAdd": _binary("ADD"),
    f"{MICROSOFT}.QLinearAveragePool": average_pool,
    f"{MICROSOFT}.QLinearConcat": concat,
    f"{MICROSOFT}.QLinearGlobalAveragePool": global_average_pool,
    f"{MICROSOFT}.QLinearLeakyRelu": function,
    f"{MICROSOFT}.QLinearSigmoid": function,
    f"{MICROSOFT}.QLinearMul": _binary("MUL"),
    f"{MICROSOFT}.QLinearSoftmax": softmax,
}
