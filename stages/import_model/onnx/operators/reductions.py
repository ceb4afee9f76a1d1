"""Operators that reduce over axes, and means between integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stages.import_model.onnx.translation import Node, Out, Translation, axis_in
from stages.import_model.onnx.values import Held, Order, Real
from stages.operators.operation import Refused

Translator = Callable[[Translation, Node], None]


def reduce_axes(t: Translation, node: Node, rank: int) -> list[int]:
    given = node.attributes.get("axes")
    if given is None and node.has(1):
        given = t.integers(node, 1, "the axes")
    if not given:
        if node.attributes.get("noop_with_empty_axes", 0):
            raise Refused("has no axes to reduce over")
        given = range(rank)
    return sorted({axis_in(int(axis), rank) for axis in given})


def reduced_order(x: Held, axes: list[int], keep: bool) -> Order:
    """The order of what is left of the axes of x."""
    left = [axis for axis in range(len(x.shape)) if axis not in axes]
    return x.order if keep else tuple(left.index(axis) for axis in x.order if axis in left)


def _reduce(op: str) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        x, out = _reduced(t, node, op)
        axes, keep = reduce_axes(t, node, len(x.shape)), bool(node.attributes.get("keepdims", 1))
        reduce_held(t, out, op, x, axes, keep=keep, sums="float")

    return translate


def _reduced(t: Translation, node: Node, op: str) -> tuple[Held, Out]:
    """What a reduction reads, of integers where it is a mean between integers, and where its result goes."""
    value, out = t.value(node, 0), t.destination(node, integers=True)
    if op == "MEAN" and isinstance(value, Real) and out is not None and out.activation == "none":
        return t.settled(value.held), out
    return t.settled(t.held(node, 0, integers=op in ("REDUCE_MAX", "REDUCE_MIN"))), Out(node.outputs[0])


def reduce_held(t: Translation, out: Out, op: str, x: Held, axes: list[int], *, keep: bool, **rule: Any) -> None:
    places = sorted(x.order.index(axis) for axis in axes)
    shape = [1 if place in places else size for place, size in enumerate(x.tensor.shape) if keep or place not in places]
    constant = t.builder.constant(f"{out.name}/axes", np.array(places, np.int32))
    inputs = [x.tensor, constant]
    made = t.builder.emit(op, inputs, shape, out.quant, out.name, "ReducerOptions", {"keepDims": keep})
    if out.quant is not None:
        t.rule(**rule)
    t.finish(out, Held.of(made, reduced_order(x, axes, keep)))


def _global(op: str) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        x, out = _reduced(t, node, op)
        reduce_held(t, out, op, x, list(range(2, len(x.shape))), keep=True, sums="float")

    return translate


def _place(op: str) -> Translator:
    """ArgMax and ArgMin: the first place, as int64."""

    def translate(t: Translation, node: Node) -> None:
        if node.attributes.get("select_last_index", 0):
            raise Refused("takes the last of equal elements; the first is supported")
        value, name = t.value(node, 0), node.outputs[0]
        x = t.settled(value.held if isinstance(value, Real) else t.held(node, 0, integers=True))
        axis = axis_in(int(node.attributes.get("axis", 0)), len(x.shape))
        place, keep = x.order.index(axis), bool(node.attributes.get("keepdims", 1))
        made = t.builder.place(op, x.tensor, place, name=f"{name}/place" if keep else name)
        if keep:
            shape = [1 if at == place else size for at, size in enumerate(x.tensor.shape)]
            made = t.builder.reshape(made, shape, name=name)
        t.bind(name, Held.of(made, reduced_order(x, [axis], keep)))

    return translate


TRANSLATORS: dict[str, Translator] = {
    "ArgMax": _place("ARG_MAX"),
    "ArgMin": _place("ARG_MIN"),
    "GlobalAveragePool": _global("MEAN"),
    "GlobalMaxPool": _global("REDUCE_MAX"),
    "ReduceMax": _reduce("REDUCE_MAX"),
    "ReduceMean": _reduce("MEAN"),
    "ReduceMin": _reduce("REDUCE_MIN"),
    "ReduceSum": _reduce("SUM"),
}
