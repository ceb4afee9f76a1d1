"""Operators on constants alone, computed when the model is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from stages.import_model.onnx.translation import Node, Translation, axis_in
from stages.import_model.onnx.values import Array, Held, Real, Stored, along
from stages.ir.operators.operation import Refused

_LARGEST = 2**28  # elements of a constant that a few bytes of the file may ask for


def fold(t: Translation, node: Node) -> bool:
    """Binds the results of an operator on constants, or of one that asks for a shape; False for any other."""
    if node.op in ("Shape", "Size"):
        value = t.value(node, 0)
        t.bind(node.outputs[0], Stored(_shape(node, value)))
        return True
    inputs = [t.values[name] if name else None for name in node.inputs]
    if any(isinstance(t.values[name], Held | Real) for name in node.read) or node.op.startswith("Random"):
        return False
    stored = [value for value in inputs if isinstance(value, Stored)]
    special = {"DequantizeLinear": _dequantized, "QuantizeLinear": _quantized, "Transpose": _transposed}.get(node.op)
    made = special(node, stored) if special is not None else None
    if made is not None:
        t.bind(node.outputs[0], made)
        return True
    arrays = {name: value.real for name in node.read if isinstance(value := t.values[name], Stored)}
    for name, array in zip(node.outputs, _computed(t, node, arrays), strict=False):
        t.bind(name, Stored(np.asarray(array)))
    return True


def _shape(node: Node, value: Any) -> np.ndarray:
    whole = (
        value.values.shape if isinstance(value, Stored) else (value.held if isinstance(value, Real) else value).shape
    )
    if node.op == "Size":
        return np.array(np.prod(whole), np.int64)
    start, end = node.attributes.get("start", 0), node.attributes.get("end", len(whole))
    return np.array(whole[start:end], np.int64)


def _dequantized(node: Node, given: list[Stored]) -> Stored | None:
    """The integers stay, with their scales."""
    values, scale = given[0].values, given[1].values
    block = node.attributes.get("block_size", 0)
    if values.dtype.kind not in "iu" or scale.dtype != np.float32 or block:
        if block:
            raise Refused(f"has a scale for each block of {block}; one for all, or for each channel, is supported")
        if scale.dtype != np.float32:
            raise Refused(f"has scales of {scale.dtype}; float32 is supported")
        raise Refused(f"dequantizes constants of {values.dtype}; int8, uint8 and int32 are supported")
    zero_point = given[2].values if len(given) > 2 else np.zeros((), values.dtype)
    axis = axis_in(int(node.attributes.get("axis", 1)), values.ndim) if scale.size > 1 else 0
    return Stored(values, scale, np.broadcast_to(zero_point.reshape(-1), scale.reshape(-1).shape), axis)


def _quantized(node: Node, given: list[Stored]) -> Stored | None:
    """round(x / scale) + zero_point, halves to even, within the type."""
    x, scale = given[0].real, given[1].values
    zero_point = given[2].values if len(given) > 2 else np.zeros((), np.uint8)
    if zero_point.dtype not in (np.int8, np.uint8, np.int32):
        return None
    axis = int(node.attributes.get("axis", 1))
    scales, points = (along(part, axis, x.ndim) for part in (scale, zero_point))
    limits = np.iinfo(zero_point.dtype)
    rounded = np.rint(x.astype(np.float32) / scales).astype(np.float64) + points
    return Stored(np.clip(rounded, limits.min, limits.max).astype(zero_point.dtype))


def _transposed(node: Node, given: list[Stored]) -> Stored | None:
    (x,) = given
    order = list(node.attributes.get("perm", range(x.values.ndim)[::-1]))
    axis = order.index(x.axis) if x.values.ndim else 0
    return Stored(np.ascontiguousarray(x.values.transpose(order)), x.scale, x.zero_point, axis)


def _computed(t: Translation, node: Node, given: Mapping[str, Array]) -> list[Any]:
    """By ONNX' own definition, of what it reads by name."""
    if node.op == "ConstantOfShape":
        elements = np.prod(given[node.inputs[0]].astype(float))
        if elements > _LARGEST:
            raise Refused(f"makes a constant of {elements:.0f} elements")
    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
    ]
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in node.outputs if name]
    graph = onnx.helper.make_graph([node.proto], "constant", inputs, outputs)
    model = onnx.helper.make_model(graph, opset_imports=t.model.opset_import, ir_version=t.model.ir_version)
    try:
        return list(ReferenceEvaluator(model).run(None, dict(given)))
    except Exception as error:  # the evaluator raises anything for an operator that contradicts itself
        reason = " ".join(str(error).split())[:200]
        raise Refused(f"cannot be computed on constants: {reason}") from error
