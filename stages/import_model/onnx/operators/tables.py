"""Functions of one tensor between integers, as tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from stages.import_model.onnx.operators.evaluated import constants, evaluated
from stages.import_model.onnx.translation import BOUNDS, Node, Out, Translation
from stages.import_model.onnx.values import Held, Real
from stages.models.onnx_names import LOWERED


def looked_up(t: Translation, node: Node) -> bool:
    """Whether it is a function between integers: a table of what ONNX Runtime gives for each of the 256.

    They are those around it, dequantized and quantized, or those that it reads itself.
    """
    value = t.value(node, 0)
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
    t.rule(table=results(t, node, last, source), function=node.op.lower())
    t.finish(last, Held(made, x.base, x.shape, x.order))
    return True


def results(t: Translation, node: Node, out: Out, source: tuple[float, int]) -> list[int]:
    """Of each int8 number: dequantized, the function (and an activation that is fused), quantized, by ONNX Runtime."""
    from stages.reference.onnx_runtime import session

    helper, constant = onnx.helper, onnx.numpy_helper.from_array
    assert out.quant is not None
    names, others = constants(t, node)
    made = node.copied(["real", *names], ["value"])
    nodes = [helper.make_node("DequantizeLinear", ["x", "s0", "z0"], ["real"]), made]
    last = "value"
    if out.activation != "none":
        low, high = BOUNDS[out.activation]
        nodes.append(helper.make_node("Clip", ["value", "low", "high"], ["clipped"]))
        last = "clipped"
        bounds = [constant(np.array(bound, np.float32), name) for name, bound in (("low", low), ("high", high))]
    else:
        bounds = []
    nodes.append(helper.make_node("QuantizeLinear", [last, "s1", "z1"], ["y"]))
    quantization = [
        constant(np.array(value, dtype), name)
        for name, value, dtype in (
            ("s0", source[0], np.float32),
            ("z0", source[1], np.int8),
            ("s1", out.quant[0], np.float32),
            ("z1", out.quant[1], np.int8),
        )
    ]
    graph = helper.make_graph(
        nodes,
        "table",
        [helper.make_tensor_value_info("x", onnx.TensorProto.INT8, [256])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT8, [256])],
        [*quantization, *bounds, *others],
    )
    model = helper.make_model(graph, opset_imports=t.model.opset_import, ir_version=t.model.ir_version)
    (found,) = session(model, node.name).run(None, {"x": np.arange(-128, 128, dtype=np.int8)})
    return [int(value) for value in found]


def requantized(t: Translation, x: Held, quant: tuple[float, int], name: str) -> Held:
    """Integers on another scale: dequantized and quantized in float32, halves to even."""
    scale, zero_point = x.tensor.scale[0], x.tensor.zero_point[0]
    if (scale, zero_point) == quant:
        return x
    real = (np.arange(-128, 128) - zero_point).astype(np.float32) * np.float32(scale)
    table = np.clip(np.rint(real / np.float32(quant[0])).astype(np.float64) + quant[1], -128, 127)
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
