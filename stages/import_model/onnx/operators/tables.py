"""Functions of one tensor between integers, as tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from stages.import_model.onnx.operators.evaluated import Part, evaluated, part, run
from stages.import_model.onnx.translation import Node, Out, Translation
from stages.import_model.onnx.values import Array, Held, Real
from stages.ir.models.onnx_names import LOWERED


def looked_up(t: Translation, node: Node, at: int = 0) -> bool:
    """Whether it is a function between integers: a table of what ONNX Runtime gives for each of the 256.

    They are those around it, dequantized and quantized, or those that it reads itself. Input `at` is the tensor, others
    are constants.
    """
    value = t.value(node, at)
    if isinstance(value, Held) and value.tensor.scale:
        quant = value.tensor.scale[0], value.tensor.zero_point[0]
        made = t.builder.quantize(value.tensor, "int8", quant, name=node.outputs[0])
        table = integer_results(t, node, t.integer_type(node.inputs[0]))
        t.rule(table=table, function=node.op.lower())
        t.bind(node.outputs[0], Held(made, value.base, value.shape, value.order))
        return True
    if not isinstance(value, Real):
        return False
    last = t.destination(node, integers=True)
    if last is None or last.quant is None:
        return False
    x = value.held
    source = (x.tensor.scale[0], x.tensor.zero_point[0])
    made = t.builder.quantize(x.tensor, "int8", last.quant, name=last.name)
    t.rule(table=results(t, node, last, source, at), function=node.op.lower())
    t.finish(last, Held(made, x.base, x.shape, x.order))
    return True


def results(t: Translation, node: Node, out: Out, source: tuple[float, int], at: int = 0) -> list[int]:
    """Of each int8 number: dequantized, the function (and an activation that is fused), quantized, by ONNX Runtime."""
    assert out.quant is not None
    parts = [_scaled("DequantizeLinear", "x", "real", source), part(t, node, "real", "value", at)]
    last = "value"
    if out.activation != "none":
        parts.append(part(t, t.nodes[out.passed[0]], last, "activated"))
        last = "activated"
    parts.append(_scaled("QuantizeLinear", last, "y", out.quant))
    found = run(t, node, parts, np.arange(-128, 128, dtype=np.int8))
    return [int(value) for value in found.reshape(-1)]


def _scaled(op: str, x: str, y: str, quant: tuple[float, int]) -> Part:
    names = [x, f"{y}/scale", f"{y}/zero_point"]
    numbers = np.array(quant[0], np.float32), np.array(quant[1], np.int8)
    constants = [onnx.numpy_helper.from_array(*one) for one in zip(numbers, names[1:], strict=True)]
    return [onnx.helper.make_node(op, names, [y])], constants


def requantized_values(real: Array, quant: tuple[float, int]) -> Array:
    """Real numbers as int8 by a scale and a zero point, halves to even."""
    scaled = np.rint(real.astype(np.float32) / np.float32(quant[0])).astype(np.float64)
    made: Array = np.clip(scaled + quant[1], -128, 127).astype(np.int8)
    return made


def requantized(t: Translation, x: Held, quant: tuple[float, int], name: str) -> Held:
    """Integers on another scale: dequantized and quantized in float32, halves to even."""
    scale, zero_point = x.tensor.scale[0], x.tensor.zero_point[0]
    if (scale, zero_point) == quant:
        return x
    real = (np.arange(-128, 128) - zero_point).astype(np.float32) * np.float32(scale)
    table = requantized_values(real, quant)
    made = t.builder.quantize(x.tensor, "int8", quant, name=name)
    t.rule(table=[int(value) for value in table], function="requantize")
    return Held(made, x.base, x.shape, x.order)


def integer_results(t: Translation, node: Node, kind: np.dtype[Any]) -> list[int]:
    """Of each int8 number what an operator of one tensor of integers and constants gives, by ONNX Runtime.

    Where its integers are uint8 (`kind`), these are 128 more. Refused where ONNX Runtime has no such operator.
    """
    lowered = LOWERED if kind == np.uint8 else 0
    numbers = (np.arange(-128, 128) + lowered).astype(kind)
    return [int(value) - lowered for value in evaluated(t, node, numbers)]
