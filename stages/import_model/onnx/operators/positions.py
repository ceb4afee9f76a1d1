"""ArgMax, ArgMin, TopK with k = 1, and CumSum."""

import numpy as np

from stages.import_model.onnx.operators.reductions import reduced, reduced_order
from stages.import_model.onnx.translation import Node, Translation, Translator, axis_in
from stages.import_model.onnx.values import Dequantized, TensorView
from stages.ir.operators.operation import Refused


def _comparable(t: Translation, node: Node) -> TensorView:
    """Return the integers of a dequantized tensor, which sort alike, else the tensor."""
    value = t.value(node, 0)
    return t.materialized(value.integers if isinstance(value, Dequantized) else t.computed(node, 0, integers=True))


def _extreme_position(t: Translation, op: str, x: TensorView, axis: int, name: str, *, keep: bool) -> TensorView:
    """Append the first position of the largest or smallest element, as int64."""
    stored_axis = x.order.index(axis)
    result = t.builder.place(op, x.tensor, stored_axis, name=f"{name}/place" if keep else name)
    if keep:
        shape = [1 if at == stored_axis else size for at, size in enumerate(x.tensor.shape)]
        result = t.builder.reshape(result, shape, name=name)
    return TensorView.of(result, reduced_order(x, [axis], keep))


def _arg_extreme(op: str) -> Translator:
    """Return the translator of ArgMax or ArgMin: the first position, as int64."""

    def translate(t: Translation, node: Node) -> None:
        if node.attributes.get("select_last_index", 0):
            raise Refused("selects the last of equal elements; only the first is supported")
        x = _comparable(t, node)
        axis = axis_in(int(node.attributes.get("axis", 0)), len(x.shape))
        t.bind(
            node.outputs[0],
            _extreme_position(t, op, x, axis, node.outputs[0], keep=bool(node.attributes.get("keepdims", 1))),
        )

    return translate


def top_k(t: Translation, node: Node) -> None:
    """Translate TopK with k = 1: an extreme value and its first position."""
    count = t.constant_integers(node, 1, "how many") if t.opset >= 10 else [int(node.attributes["k"])]
    if count != [1]:
        raise Refused(f"has k = {count[0] if count else 0}; only 1 is supported")
    x, largest = _comparable(t, node), bool(node.attributes.get("largest", 1))
    axis = axis_in(int(node.attributes.get("axis", -1)), len(x.shape))
    values, places = (*node.outputs, "")[:2]
    if values and (t.readers[values] or values in t.outputs):
        extreme = reduced(t, values, "REDUCE_MAX" if largest else "REDUCE_MIN", x, [axis], keep=True)
        t.bind(values, Dequantized(extreme) if isinstance(t.value(node, 0), Dequantized) else extreme)
    if places and (t.readers[places] or places in t.outputs):
        t.bind(places, _extreme_position(t, "ARG_MAX" if largest else "ARG_MIN", x, axis, places, keep=True))


def cumulative_sum(t: Translation, node: Node) -> None:
    """Translate CumSum."""
    x, name = t.materialized(t.computed(node, 0)), node.outputs[0]
    (axis,) = t.constant_integers(node, 1, "the axis")
    stored_axis = x.order.index(axis_in(axis, len(x.shape)))
    inputs = [x.tensor, t.builder.constant(f"{name}/axis", np.array(stored_axis, np.int32))]
    fields = {key: bool(node.attributes.get(key, 0)) for key in ("exclusive", "reverse")}
    t.bind(
        name,
        TensorView.of(t.builder.emit("CUMSUM", inputs, x.tensor.shape, None, name, "CumsumOptions", fields), x.order),
    )


TRANSLATORS: dict[str, Translator] = {
    "ArgMax": _arg_extreme("ARG_MAX"),
    "ArgMin": _arg_extreme("ARG_MIN"),
    "CumSum": cumulative_sum,
    "TopK": top_k,
}
