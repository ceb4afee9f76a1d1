"""QuantizeLinear and DequantizeLinear: between real numbers and integers."""

from __future__ import annotations

from collections.abc import Callable

from stages.import_model.onnx.operators.tables import requantized
from stages.import_model.onnx.translation import Node, Translation
from stages.import_model.onnx.values import Held, Real, Stored
from stages.ir.operators.operation import Refused


def quantize(t: Translation, node: Node) -> None:
    """x / scale to the nearest integer, halves to even. What was dequantized by the same scale is what it was."""
    value, name, quant = t.value(node, 0), node.outputs[0], t.parameters(node, 1, 2)
    if isinstance(value, Real) and (value.held.tensor.scale[0], value.held.tensor.zero_point[0]) == quant:
        t.bind(name, value.held)
        return
    if isinstance(value, Real):
        t.bind(name, requantized(t, value.held, quant, name))
        return
    x = t.held(node, 0)
    made = t.builder.quantize(x.tensor, "int8", quant, name=name)
    t.bind(name, Held(made, x.base, x.shape, x.order))


def dequantize(t: Translation, node: Node) -> None:
    """Nothing is computed until something needs real numbers."""
    value = t.value(node, 0)
    if isinstance(value, Stored | Real):
        raise Refused("dequantizes real numbers")
    scale, zero_point = t.parameters(node, 1, 2)
    if (value.tensor.scale, value.tensor.zero_point) != ((scale,), (zero_point,)):
        was = f"{value.tensor.scale[0]:g}" if value.tensor.scale else "none"
        raise Refused(f"dequantizes by the scale {scale:g} what was quantized by {was}")
    t.bind(node.outputs[0], Real(value))


TRANSLATORS: dict[str, Callable[[Translation, Node], None]] = {
    "DequantizeLinear": dequantize,
    "QuantizeLinear": quantize,
}
