"""QuantizeLinear and DequantizeLinear."""

from stages.import_model.onnx.operators.tables import requantized
from stages.import_model.onnx.translation import Node, Translation, Translator
from stages.import_model.onnx.values import Constant, Dequantized, TensorView
from stages.ir.operators.operation import Refused


def quantize(t: Translation, node: Node) -> None:
    """Translate QuantizeLinear: x / scale to the nearest integer, halves to even.

    A value that was dequantized with the same scale is not computed again.
    """
    value, name, quant = t.value(node, 0), node.outputs[0], t.parameters(node, 1, 2)
    if (
        isinstance(value, Dequantized)
        and (value.integers.tensor.scale[0], value.integers.tensor.zero_point[0]) == quant
    ):
        t.bind(name, value.integers)
        return
    if isinstance(value, Dequantized):
        t.bind(name, requantized(t, value.integers, quant, name))
        return
    x = t.computed(node, 0)
    result = t.builder.quantize(x.tensor, "int8", quant, name=name)
    t.bind(name, TensorView(result, x.base, x.shape, x.order))


def dequantize(t: Translation, node: Node) -> None:
    """Translate DequantizeLinear; nothing is computed until an operator needs real numbers."""
    value = t.value(node, 0)
    if isinstance(value, Constant | Dequantized):
        raise Refused("dequantizes real numbers; its input must be integers")
    scale, zero_point = t.parameters(node, 1, 2)
    if (value.tensor.scale, value.tensor.zero_point) != ((scale,), (zero_point,)):
        source_scale = f"{value.tensor.scale[0]:g}" if value.tensor.scale else "none"
        raise Refused(f"dequantizes with the scale {scale:g}, but its input has the scale {source_scale}")
    t.bind(node.outputs[0], Dequantized(value))


TRANSLATORS: dict[str, Translator] = {
    "DequantizeLinear": dequantize,
    "QuantizeLinear": quantize,
}
