"""Where elements are, and sums up to each: ArgMax, ArgMin, TopK of one, CumSum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stages.import_model.onnx.operators.reductions import reduced, reduced_order
from stages.import_model.onnx.translation import Node, Translation, axis_in
from stages.import_model.onnx.values import Held, Real
from stages.ir.operators.operation import Refused

Translator = Callable[[Translation, Node], None]


def _integers_too(t: Translation, node: Node) -> Held:
    """The integers of what is dequantized, whose order is that of the real numbers; else the tensor itself."""
    value = t.value(node, 0)
    return t.settled(value.held if isinstance(value, Real) else t.held(node, 0, integers=True))


def _extreme(t: Translation, op: str, x: Held, axis: int, name: str, *, keep: bool) -> Held:
    """The first place of the largest or the smallest element, as int64."""
    place = x.order.index(axis)
    made = t.builder.place(op, x.tensor, place, name=f"{name}/place" if keep else name)
    if keep:
        shape = [1 if at == place else size for at, size in enumerate(x.tensor.shape)]
        made = t.builder.reshape(made, shape, name=name)
    return Held.of(made, reduced_order(x, [axis], keep))


def _place(op: str) -> Translator:
    """ArgMax and ArgMin: the first place, as int64."""

    def translate(t: Translation, node: Node) -> None:
        if node.attributes.get("select_last_index", 0):
            raise Refused("takes the last of equal elements; the first is supported")
        x = _integers_too(t, node)
        axis = axis_in(int(node.attributes.get("axis", 0)), len(x.shape))
        t.bind(
            node.outputs[0], _extreme(t, op, x, axis, node.outputs[0], keep=bool(node.attributes.get("keepdims", 1)))
        )

    return translate


def top(t: Translation, node: Node) -> None:
    """TopK of one: a maximum or minimum, and its first place."""
    count = t.integers(node, 1, "how many") if t.opset >= 10 else [int(node.attributes["k"])]
    if count != [1]:
        raise Refused(f"takes the first {count[0] if count else 0}; one is supported")
    x, largest = _integers_too(t, node), bool(node.attributes.get("largest", 1))
    axis = axis_in(int(node.attributes.get("axis", -1)), len(x.shape))
    values, places = (*node.outputs, "")[:2]
    if values and (t.readers[values] or values in t.outputs):
        found = reduced(t, values, "REDUCE_MAX" if largest else "REDUCE_MIN", x, [axis], keep=True)
        t.bind(values, Real(found) if isinstance(t.value(node, 0), Real) else found)
    if places and (t.readers[places] or places in t.outputs):
        t.bind(places, _extreme(t, "ARG_MAX" if largest else "ARG_MIN", x, axis, places, keep=True))


def cumulative(t: Translation, node: Node) -> None:
    x, name = t.settled(t.held(node, 0)), node.outputs[0]
    (axis,) = t.integers(node, 1, "the axis")
    place = x.order.index(axis_in(axis, len(x.shape)))
    inputs = [x.tensor, t.builder.constant(f"{name}/axis", np.array(place, np.int32))]
    fields = {key: bool(node.attributes.get(key, 0)) for key in ("exclusive", "reverse")}
    t.bind(
        name, Held.of(t.builder.emit("CUMSUM", inputs, x.tensor.shape, None, name, "CumsumOptions", fields), x.order)
    )


TRANSLATORS: dict[str, Translator] = {
    "ArgMax": _place("ARG_MAX"),
    "ArgMin": _place("ARG_MIN"),
    "CumSum": cumulative,
    "TopK": top,
}
