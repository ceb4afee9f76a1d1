"""Functions of one tensor between integers, as 256-entry tables."""

from typing import Any

import numpy as np
import onnx

from stages.import_model.onnx.operators.evaluate import Subgraph, evaluated, part, run
from stages.import_model.onnx.translation import Node, Out, Translation
from stages.import_model.onnx.values import Dequantized, TensorView
from stages.ir.arrays import Array
from stages.ir.models.onnx_names import LOWERED


def lower_to_table(t: Translation, node: Node, at: int = 0) -> bool:
    """Emit a function between integers as a table; return False for other nodes.

    ONNX Runtime computes the 256 results. The integers are dequantized before and quantized after the function, or
    the function reads integers. at: the tensor's input; the others are constants.
    """
    value = t.value(node, at)
    if isinstance(value, TensorView) and value.tensor.scale:
        quant = value.tensor.scale[0], value.tensor.zero_point[0]
        result = t.builder.quantize(value.tensor, "int8", quant, name=node.outputs[0])
        table = integer_results(t, node, t.integer_type(node.inputs[0]))
        t.rule(table=table, function=node.op.lower())
        t.bind(node.outputs[0], TensorView(result, value.base, value.shape, value.order))
        return True
    if not isinstance(value, Dequantized):
        return False
    out = t.destination(node, integers=True)
    if out is None or out.quant is None:
        return False
    x = value.integers
    source = (x.tensor.scale[0], x.tensor.zero_point[0])
    result = t.builder.quantize(x.tensor, "int8", out.quant, name=out.name)
    t.rule(table=results(t, node, out, source, at), function=node.op.lower())
    t.finish(out, TensorView(result, x.base, x.shape, x.order))
    return True


def results(t: Translation, node: Node, out: Out, source: tuple[float, int], at: int = 0) -> list[int]:
    """Return for each int8 value the result of dequantize, function, quantize.

    ONNX Runtime computes it, with a fused activation.
    """
    assert out.quant is not None
    parts = [_scaled("DequantizeLinear", "x", "real", source), part(t, node, "real", "value", at)]
    last = "value"
    if out.activation != "none":
        parts.append(part(t, t.nodes[out.passed[0]], last, "activated"))
        last = "activated"
    parts.append(_scaled("QuantizeLinear", last, "y", out.quant))
    values = run(t, node, parts, np.arange(-128, 128, dtype=np.int8))
    return [int(value) for value in values.reshape(-1)]


def _scaled(op: str, x: str, y: str, quant: tuple[float, int]) -> Subgraph:
    names = [x, f"{y}/scale", f"{y}/zero_point"]
    numbers = np.array(quant[0], np.float32), np.array(quant[1], np.int8)
    constants = [onnx.numpy_helper.from_array(*pair) for pair in zip(numbers, names[1:], strict=True)]
    return [onnx.helper.make_node(op, names, [y])], constants


def requantized_values(real: Array, quant: tuple[float, int]) -> Array:
    """Return real numbers as int8, halves to even."""
    scaled = np.rint(real.astype(np.float32) / np.float32(quant[0])).astype(np.float64)
    integers: Array = np.clip(scaled + quant[1], -128, 127).astype(np.int8)
    return integers


def requantized(t: Translation, x: TensorView, quant: tuple[float, int], name: str) -> TensorView:
    """Return integers with another scale, dequantized and quantized in float32, halves to even."""
    scale, zero_point = x.tensor.scale[0], x.tensor.zero_point[0]
    if (scale, zero_point) == quant:
        return x
    real = (np.arange(-128, 128) - zero_point).astype(np.float32) * np.float32(scale)
    table = requantized_values(real, quant)
    result = t.builder.quantize(x.tensor, "int8", quant, name=name)
    t.rule(table=[int(value) for value in table], function="requantize")
    return TensorView(result, x.base, x.shape, x.order)


def integer_results(t: Translation, node: Node, kind: np.dtype[Any]) -> list[int]:
    """Return for each int8 value the operator's result, computed by ONNX Runtime.

    kind: the file's type; uint8 values are 128 larger. Raises Refused if ONNX Runtime lacks the operator.
    """
    lowered = LOWERED if kind == np.uint8 else 0
    numbers = (np.arange(-128, 128) + lowered).astype(kind)
    return [int(value) - lowered for value in evaluated(t, node, numbers)]
