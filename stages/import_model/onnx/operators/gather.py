"""Gather by computed indices, such as token ids or the result of an ArgMax."""

import numpy as np

from stages.import_model.onnx.translation import Node, Translation, Translator, axis_in
from stages.import_model.onnx.values import Constant, Dequantized, TensorView, plain_order
from stages.ir.models.onnx_names import LOWERED
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused


def gather(t: Translation, node: Node) -> None:
    """Translate Gather; the rule `negative` marks that indices may count from the end."""
    data = t.value(node, 0)
    indices = t.plain(t.computed(node, 1)).tensor
    if indices.dtype not in ("int32", "int64"):
        raise Refused(f"has indices of {indices.dtype}; int32 and int64 are supported")
    source = _source(t, node, data)
    axis = axis_in(int(node.attributes.get("axis", 0)), len(source.shape))
    shape = (*source.shape[:axis], *indices.shape, *source.shape[axis + 1 :])
    fields = {"axis": axis, "batchDims": 0}
    tensor = t.builder.emit("GATHER", [source, indices], shape, None, node.outputs[0], "GatherOptions", fields)
    t.rule(negative=True)
    view = TensorView.of(tensor, plain_order(len(shape)))
    integers = isinstance(data, Dequantized) or (isinstance(data, Constant) and bool(source.scale))
    t.bind(node.outputs[0], Dequantized(view) if integers else view)


def _source(t: Translation, node: Node, data: TensorView | Dequantized | Constant) -> Tensor:
    """Return the tensor to index, in ONNX' order; integers of a dequantized tensor."""
    if not isinstance(data, Constant):
        return t.plain(data.integers if isinstance(data, Dequantized) else data).tensor
    name = node.inputs[0]
    if data.scale is None or data.zero_point is None or data.scale.size > 1 or data.values.dtype.itemsize > 1:
        return t.builder.constant(name, np.ascontiguousarray(data.real_values))
    values, zero_point = data.values, int(np.asarray(data.zero_point).reshape(-1)[0])
    if values.dtype == np.uint8:
        values, zero_point = (values.astype(np.int16) - LOWERED).astype(np.int8), zero_point - LOWERED
    return t.builder.constant(name, np.ascontiguousarray(values), float(data.scale.reshape(-1)[0]), zero_point)


TRANSLATORS: dict[str, Translator] = {"Gather": gather}
