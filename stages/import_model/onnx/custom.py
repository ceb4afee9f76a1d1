"""Operators of other domains, which a plug-in declares by their ONNX name.

See stages.ir.operators.plugins.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from stages.import_model.onnx.operators import MOVES, SCALED
from stages.import_model.onnx.translation import MICROSOFT, Node, Out, Translation, as_text
from stages.import_model.onnx.values import Constant, Dequantized, Order, TensorView, image_order, plain_order
from stages.ir.models.onnx_names import LOWERED, Traced
from stages.ir.models.stated_shapes import stated_shapes
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.declaration import Operator
from stages.ir.operators.operation import Refused
from stages.ir.operators.table import onnx_operator


def declared(node: Node) -> Operator | None:
    """Return a plug-in's declaration; None for ONNX', Microsoft's and undeclared operators."""
    return None if node.proto.domain in ("", "ai.onnx", MICROSOFT) else onnx_operator(node.op)


def quantization(t: Translation, name: str) -> tuple[float, int] | None:
    """Return scale and int8 zero point of integers, taken from their readers; None if unknown."""
    for node in t.readers[name]:
        positions = [at for at, name_read in enumerate(node.inputs) if name_read == name]
        if node.op == "DequantizeLinear" and positions[0] == 0:
            return t.parameters(node, 1, 2)
        if node.op in SCALED and (at := positions[0]) in SCALED[node.op]:
            return t.parameters(node, at + 1, at + 2)
        if node.op in MOVES and (quant := quantization(t, node.outputs[0])):
            return quant
    if any(node.op == "Cast" for node in t.readers[name]):  # integers as such: a scale of 1
        return 1.0, -LOWERED if t.integer_type(name) == np.uint8 else 0
    return None


def translate_custom(t: Translation, node: Node, operator: Operator) -> None:
    """Append a custom TFLite operator, of integers or of float32. Raises Refused.

    It computes integers if it reads integers, or if all computed inputs are dequantized and all results quantized.
    """
    if operator.tensors.state:
        raise Refused(f"is {operator.name}, which has state; ONNX operators have none")
    outs = _results(t, node, operator)
    integers = any(out.quant is not None for out in outs)
    operands = [
        _operand(t, node, at, operator, integers=integers) if node.has(at) else None for at in range(len(node.inputs))
    ]
    custom = _options(node)
    shapes = stated_shapes(operator.name, node.outputs[0], operands, {}, len(outs), custom)
    tensors = []
    for at, (out, shape) in enumerate(zip(outs, shapes, strict=True)):
        kind = "int8" if out.quant is not None else _kind(operator, at, operands)
        tensors.append(t.builder.tensor(out.name, shape, kind, *(out.quant or ())))
    t.builder.operator(operator.name, operands, tensors, custom=custom)
    for out, tensor in zip(outs, tensors, strict=True):
        t.finish(out, TensorView.of(tensor, _order(operator, len(tensor.shape))))


def _order(operator: Operator, rank: int) -> Order:
    return image_order(rank) if operator.legalization.images else plain_order(rank)


def _kind(operator: Operator, at: int, operands: Sequence[Tensor | None]) -> str:
    """Return the type of a result without scale: as declared, else the type of the first input."""
    if operator.tensors.results:
        return operator.tensors.results[min(at, len(operator.tensors.results) - 1)]
    return next(tensor.dtype for tensor in operands if tensor is not None)


def _results(t: Translation, node: Node, operator: Operator) -> list[Out]:
    """Return the destinations, all int8 or none. Raises Refused if the operator lacks the type."""
    computed = [t.values[name] for name in node.inputs if name and not isinstance(t.values[name], Constant)]
    plain = [value for value in computed if isinstance(value, TensorView) and value.tensor.scale]
    outs = [Out(name) for name in node.outputs]
    if operator.tensors.results and not {"int8", "uint8"} & {*operator.tensors.results}:
        return outs
    if plain:
        return [_as_integers(t, name, operator, plain[0]) for name in node.outputs]
    if "int8" in operator.tensors.types and any(isinstance(value, Dequantized) for value in computed):
        quantized = [t.quantized(name) for name in node.outputs]
        if None not in quantized:
            return [out for out in quantized if out is not None]
    if "float32" not in operator.tensors.types:
        types = " and ".join(operator.tensors.types)
        what = f"computes in float32; the plug-in declares {operator.name} for {types} only"
        raise Refused(what, "Put it between a DequantizeLinear and a QuantizeLinear.")
    return outs


def _as_integers(t: Translation, name: str, operator: Operator, x: TensorView) -> Out:
    """Return the destination of an integer result, with the scale that its readers state."""
    if operator.quantization.alike:
        return Out(name, "none", (x.tensor.scale[0], x.tensor.zero_point[0]))
    quant = quantization(t, name)
    if quant is None:
        raise Refused(f"has the integer result '{name}', whose scale no reader states")
    return Out(name, "none", quant)


def _operand(t: Translation, node: Node, at: int, operator: Operator, *, integers: bool) -> Tensor:
    """Input `at` in the operator's axis order.

    It is the integer tensor if the results are integers (`integers`) or if the operator takes integers only.
    """
    value, name = t.value(node, at), f"{node.outputs[0]}/operand{at}"
    if isinstance(value, Constant):
        return _constant(t, value if integers else Constant(value.real_values), operator, name)
    wants_integers = integers or "float32" not in operator.tensors.types
    x = value.integers if isinstance(value, Dequantized) and wants_integers else value
    view = x if isinstance(x, TensorView) else t.dequantized(node.inputs[at], x)
    view = t.materialized(view)
    result = t.reordered(view, _order(operator, len(view.shape)))
    if not isinstance(value, Dequantized):
        t.names.setdefault(result.tensor.index, Traced(node.inputs[at], result.base, result.order))
    return result.tensor


def _constant(t: Translation, value: Constant, operator: Operator, name: str) -> Tensor:
    order = _order(operator, value.values.ndim)
    values = np.ascontiguousarray(value.values.transpose(order))
    if value.scale is None or value.zero_point is None:
        return t.builder.constant(name, values)
    zero_points = np.asarray(value.zero_point).astype(np.int64)
    if values.dtype == np.uint8:
        values, zero_points = (values.astype(np.int16) - LOWERED).astype(np.int8), zero_points - LOWERED
    axis = order.index(value.axis) if value.scale.size > 1 else 0
    return t.builder.constant(name, values, value.scale.reshape(-1), zero_points.reshape(-1), axis=axis)


def _options(node: Node) -> bytes:
    """Return the attributes as a flexbuffer with a dictionary."""
    from flatbuffers import flexbuffers

    return bytes(
        flexbuffers.Dumps({name: _flexbuffer_value(name, value) for name, value in sorted(node.attributes.items())})
    )


def _flexbuffer_value(name: str, value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value).tolist()
    if isinstance(value, list | tuple):
        return [_flexbuffer_value(name, item) for item in value]
    if isinstance(value, bytes):
        return as_text(value)
    if not isinstance(value, int | float | str):
        raise Refused(f"has the attribute '{name}' of the unsupported type {type(value).__name__}")
    return value
