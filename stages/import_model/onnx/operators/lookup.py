"""Gather by indices that are computed: token ids, or what an ArgMax gives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stages.import_model.onnx.translation import Node, Translation, axis_in
from stages.import_model.onnx.values import Held, Real, Stored, plain_order
from stages.ir.models.onnx_names import LOWERED
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused


def gather(t: Translation, node: Node) -> None:
    """As GATHER of TFLite; indices below 0 count from the end, which the rule `negative` says."""
    data = t.value(node, 0)
    places = t.plain(t.held(node, 1)).tensor
    if places.dtype not in ("int32", "int64"):
        raise Refused(f"has indices of {places.dtype}; int32 and int64 are supported")
    source = _source(t, node, data)
    axis = axis_in(int(node.attributes.get("axis", 0)), len(source.shape))
    shape = (*source.shape[:axis], *places.shape, *source.shape[axis + 1 :])
    fields = {"axis": axis, "batchDims": 0}
    tensor = t.builder.emit("GATHER", [source, places], shape, None, node.outputs[0], "GatherOptions", fields)
    t.rule(negative=True)
    held = Held.of(tensor, plain_order(len(shape)))
    integers = isinstance(data, Real) or (isinstance(data, Stored) and bool(source.scale))
    t.bind(node.outputs[0], Real(held) if integers else held)


def _source(t: Translation, node: Node, data: Held | Real | Stored) -> Tensor:
    """What is looked up, in ONNX' own order: of a dequantized tensor the integers."""
    if not isinstance(data, Stored):
        return t.plain(data.held if isinstance(data, Real) else data).tensor
    name = node.inputs[0]
    if data.scale is None or data.zero_point is None or data.scale.size > 1 or data.values.dtype.itemsize > 1:
        return t.builder.constant(name, np.ascontiguousarray(data.real))
    values, zero_point = data.values, int(np.asarray(data.zero_point).reshape(-1)[0])
    if values.dtype == np.uint8:
        values, zero_point = (values.astype(np.int16) - LOWERED).astype(np.int8), zero_point - LOWERED
    return t.builder.constant(name, np.ascontiguousarray(values), float(data.scale.reshape(-1)[0]), zero_point)


TRANSLATORS: dict[str, Callable[[Translation, Node], None]] = {"Gather": gather}
