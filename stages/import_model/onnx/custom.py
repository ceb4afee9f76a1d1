"""Operators of a project's own: a plug-in says what they compute (stages.ir.operators.plugins), by their ONNX name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from stages.import_model.onnx.operators import MOVES, SCALED
from stages.import_model.onnx.translation import MICROSOFT, Node, Out, Translation, as_text
from stages.import_model.onnx.values import Held, Order, Real, Stored, image_order, plain_order
from stages.ir.models.onnx_names import LOWERED, Traced
from stages.ir.models.stated_shapes import stated_shapes
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.declaration import Operator
from stages.ir.operators.operation import Refused
from stages.ir.operators.table import onnx_operator


def declared(node: Node) -> Operator | None:
    """What a plug-in declares of the operator; None for ONNX' own, Microsoft's, and what nobody declares."""
    return None if node.proto.domain in ("", "ai.onnx", MICROSOFT) else onnx_operator(node.op)


def quantization(t: Translation, name: str) -> tuple[float, int] | None:
    """Scale and zero point (of int8) of integers, from what reads them."""
    for node in t.readers[name]:
        places = [at for at, given in enumerate(node.inputs) if given == name]
        if node.op == "DequantizeLinear" and places[0] == 0:
            return t.parameters(node, 1, 2)
        if node.op in SCALED and (at := places[0]) in SCALED[node.op]:
            return t.parameters(node, at + 1, at + 2)
        if node.op in MOVES and (found := quantization(t, node.outputs[0])):
            return found
    if any(node.op == "Cast" for node in t.readers[name]):  # the integers themselves, as with a scale of 1
        return 1.0, -LOWERED if t.integer_type(name) == np.uint8 else 0
    return None


def translate_custom(t: Translation, node: Node, operator: Operator) -> None:
    """Appends the custom operator of TFLite: of integers where it reads them as they are or is between them.

    It is between them where each input that is computed is dequantized, and each result quantized. Raises Refused.
    """
    if operator.state:
        raise Refused(f"is {operator.name}, which keeps state: operators of ONNX do not")
    outs = _results(t, node, operator)
    whole = any(out.quant is not None for out in outs)
    given = [_operand(t, node, at, operator, whole=whole) if node.has(at) else None for at in range(len(node.inputs))]
    custom = _options(node)
    shapes = stated_shapes(operator.name, node.outputs[0], given, {}, len(outs), custom)
    made = []
    for at, (out, shape) in enumerate(zip(outs, shapes, strict=True)):
        kind = "int8" if out.quant is not None else _kind(operator, at, given)
        made.append(t.builder.tensor(out.name, shape, kind, *(out.quant or ())))
    t.builder.operator(operator.name, given, made, custom=custom)
    for out, tensor in zip(outs, made, strict=True):
        t.finish(out, Held.of(tensor, _order(operator, len(tensor.shape))))


def _order(operator: Operator, rank: int) -> Order:
    return image_order(rank) if operator.images else plain_order(rank)


def _kind(operator: Operator, at: int, given: Sequence[Tensor | None]) -> str:
    """The type of a result that has no scale: that of the data, if nothing else is declared."""
    if operator.results:
        return operator.results[min(at, len(operator.results) - 1)]
    return next(tensor.dtype for tensor in given if tensor is not None)


def _results(t: Translation, node: Node, operator: Operator) -> list[Out]:
    """Where the results go, all as int8 or none; Refused where the operator has no such form."""
    computed = [t.values[name] for name in node.inputs if name and not isinstance(t.values[name], Stored)]
    plain = [value for value in computed if isinstance(value, Held) and value.tensor.scale]
    outs = [Out(name) for name in node.outputs]
    if operator.results and not {"int8", "uint8"} & {*operator.results}:
        return outs
    if plain:
        return [_as_integers(t, name, operator, plain[0]) for name in node.outputs]
    if "int8" in operator.types and any(isinstance(value, Real) for value in computed):
        quantized = [t.quantized(name) for name in node.outputs]
        if None not in quantized:
            return [out for out in quantized if out is not None]
    if "float32" not in operator.types:
        types = " and ".join(operator.types)
        what = f"is of real numbers here; the plug-in has {operator.name} for {types}"
        raise Refused(what, "A DequantizeLinear before and a QuantizeLinear behind it make it one of integers.")
    return outs


def _as_integers(t: Translation, name: str, operator: Operator, x: Held) -> Out:
    """A result of integers that the operator itself gives: what reads them says their scale."""
    if operator.alike:
        return Out(name, "none", (x.tensor.scale[0], x.tensor.zero_point[0]))
    quant = quantization(t, name)
    if quant is None:
        raise Refused(f"gives the integers '{name}', and nothing that reads them says their scale")
    return Out(name, "none", quant)


def _operand(t: Translation, node: Node, at: int, operator: Operator, *, whole: bool) -> Tensor:
    """An input in the operator's order of axes: of integers where the results are (`whole`), or where only they are."""
    value, name = t.value(node, at), f"{node.outputs[0]}/operand{at}"
    if isinstance(value, Stored):
        return _constant(t, value if whole else Stored(value.real), operator, name)
    wants_integers = whole or "float32" not in operator.types
    x = value.held if isinstance(value, Real) and wants_integers else value
    held = x if isinstance(x, Held) else t.real(node.inputs[at], x)
    held = t.settled(held)
    made = t.ordered(held, _order(operator, len(held.shape)))
    if not isinstance(value, Real):
        t.names.setdefault(made.tensor.index, Traced(node.inputs[at], made.base, made.order))
    return made.tensor


def _constant(t: Translation, value: Stored, operator: Operator, name: str) -> Tensor:
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
    """The attributes as a flexbuffer of a dictionary."""
    from flatbuffers import flexbuffers

    return bytes(flexbuffers.Dumps({name: _plain(name, value) for name, value in sorted(node.attributes.items())}))


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value).tolist()
    if isinstance(value, list | tuple):
        return [_plain(name, one) for one in value]
    if isinstance(value, bytes):
        return as_text(value)
    if not isinstance(value, int | float | str):
        raise Refused(f"has the attribute '{name}', which is a {type(value).__name__}")
    return value
