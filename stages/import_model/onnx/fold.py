"""Evaluate operators on constants during import."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from stages.import_model.onnx.translation import Node, Translation, axis_in
from stages.import_model.onnx.values import Constant, Dequantized, TensorView, along
from stages.ir.arrays import Array
from stages.ir.operators.operation import Refused

_LARGEST = 2**28  # elements of a constant that a few bytes of the file can request


def fold(t: Translation, node: Node) -> bool:
    """Bind the results of an operator on constants or a shape; return whether it did."""
    if node.op in OF_SHAPES:
        t.bind(node.outputs[0], Constant(OF_SHAPES[node.op](node, shape_of(t.value(node, 0)))))
        return True
    inputs = [t.values[name] if name else None for name in node.inputs]
    if any(isinstance(t.values[name], TensorView | Dequantized) for name in node.read) or node.op.startswith("Random"):
        return False
    stored = [value for value in inputs if isinstance(value, Constant)]
    evaluator = {"DequantizeLinear": _dequantized, "QuantizeLinear": _quantized, "Transpose": _transposed}.get(node.op)
    constant = evaluator(node, stored) if evaluator is not None else None
    if constant is not None:
        t.bind(node.outputs[0], constant)
        return True
    arrays = {name: value.real_values for name in node.read if isinstance(value := t.values[name], Constant)}
    for name, array in zip(node.outputs, _computed(t, node, arrays), strict=False):
        t.bind(name, Constant(np.asarray(array)))
    return True


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a value in ONNX."""
    if isinstance(value, Constant):
        return value.values.shape
    return tuple((value.integers if isinstance(value, Dequantized) else value).shape)


def _size(node: Node, shape: tuple[int, ...]) -> Array:
    return np.array(np.prod(shape), np.int64)


def _shape(node: Node, shape: tuple[int, ...]) -> Array:
    start, end = node.attributes.get("start", 0), node.attributes.get("end", len(shape))
    return np.array(shape[start:end], np.int64)


#: Operators whose results depend on the shape of their input only.
OF_SHAPES = {"Shape": _shape, "Size": _size}


def _dequantized(node: Node, inputs: list[Constant]) -> Constant | None:
    """Return the integers with their scales."""
    values, scale = inputs[0].values, inputs[1].values
    block = node.attributes.get("block_size", 0)
    if values.dtype.kind not in "iu" or scale.dtype != np.float32 or block:
        if block:
            raise Refused(f"has a scale per block of {block}; one scale, or one per channel, is supported")
        if scale.dtype != np.float32:
            raise Refused(f"has scales of {scale.dtype}; float32 is supported")
        raise Refused(f"dequantizes constants of {values.dtype}; int8, uint8 and int32 are supported")
    zero_point = inputs[2].values if len(inputs) > 2 else np.zeros((), values.dtype)
    axis = axis_in(int(node.attributes.get("axis", 1)), values.ndim) if scale.size > 1 else 0
    return Constant(values, scale, np.broadcast_to(zero_point.reshape(-1), scale.reshape(-1).shape), axis)


def _quantized(node: Node, inputs: list[Constant]) -> Constant | None:
    """Return round(x / scale) + zero_point, halves to even, clamped to the type."""
    x, scale = inputs[0].real_values, inputs[1].values
    zero_point = inputs[2].values if len(inputs) > 2 else np.zeros((), np.uint8)
    if zero_point.dtype not in (np.int8, np.uint8, np.int32):
        return None
    axis = int(node.attributes.get("axis", 1))
    scales, points = (along(part, axis, x.ndim) for part in (scale, zero_point))
    limits = np.iinfo(zero_point.dtype)
    rounded = np.rint(x.astype(np.float32) / scales).astype(np.float64) + points
    return Constant(np.clip(rounded, limits.min, limits.max).astype(zero_point.dtype))


def _transposed(node: Node, inputs: list[Constant]) -> Constant | None:
    (x,) = inputs
    order = list(node.attributes.get("perm", range(x.values.ndim)[::-1]))
    axis = order.index(x.axis) if x.values.ndim else 0
    return Constant(np.ascontiguousarray(x.values.transpose(order)), x.scale, x.zero_point, axis)


def _computed(t: Translation, node: Node, values: Mapping[str, Array]) -> list[Any]:
    """Evaluate with ONNX' reference evaluator; `values` by name."""
    if node.op == "ConstantOfShape":
        elements = np.prod(values[node.inputs[0]].astype(float))
        if elements > _LARGEST:
            raise Refused(f"makes a constant of {elements:.0f} elements; at most {_LARGEST} are supported")
    input_infos = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in values.items()
    ]
    output_infos = [onnx.helper.make_empty_tensor_value_info(name) for name in node.outputs if name]
    graph = onnx.helper.make_graph([node.proto], "constant", input_infos, output_infos)
    model = onnx.helper.make_model(graph, opset_imports=t.model.opset_import, ir_version=t.model.ir_version)
    try:
        return list(ReferenceEvaluator(model).run(None, dict(values)))
    except Exception as error:  # the evaluator raises various exceptions for invalid operators
        reason = " ".join(str(error).split())[:200]
        raise Refused(f"cannot be computed on constants: {reason}") from error
