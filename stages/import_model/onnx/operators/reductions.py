"""Operators that reduce over axes, and means between integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stages.import_model.onnx.operators.functions import Steps
from stages.import_model.onnx.translation import Node, Out, Translation, axis_in
from stages.import_model.onnx.values import Held, Order, Real, permuted
from stages.ir.operators.operation import Refused

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


def reduced_order(x: Held, axes: Sequence[int], keep: bool) -> Order:
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
    made = reduced(t, out.name, op, x, axes, keep=keep, quant=out.quant)
    if out.quant is not None:
        t.rule(**rule)
    t.finish(out, made)


def reduced(
    t: Translation,
    name: str,
    op: str,
    x: Held,
    axes: Sequence[int],
    *,
    keep: bool,
    quant: tuple[float, int] | None = None,
) -> Held:
    """Appends a reduction over axes of ONNX'."""
    places = sorted(x.order.index(axis) for axis in axes)
    shape = [1 if place in places else size for place, size in enumerate(x.tensor.shape) if keep or place not in places]
    inputs = [x.tensor, t.builder.constant(f"{name}/axes", np.array(places, np.int32))]
    made = t.builder.emit(op, inputs, shape, quant, name, "ReducerOptions", {"keepDims": keep})
    return Held.of(made, reduced_order(x, axes, keep))


def _global(op: str) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        x, out = _reduced(t, node, op)
        reduce_held(t, out, op, x, list(range(2, len(x.shape))), keep=True, sums="float")

    return translate


def _of_powers(inner: str, outer: str = "") -> Translator:
    """A sum of absolute values or squares, and a function of that."""

    def translate(t: Translation, node: Node) -> None:
        x, name = t.settled(t.held(node, 0)), node.outputs[0]
        axes, keep = reduce_axes(t, node, len(x.shape)), bool(node.attributes.get("keepdims", 1))
        steps = Steps(t, name)
        given = (
            x.tensor if not inner else steps("MUL", x.tensor, x.tensor) if inner == "MUL" else steps(inner, x.tensor)
        )
        total = reduced(t, f"{name}/sum" if outer else name, "SUM", replace(x, tensor=given), axes, keep=keep)
        made = steps(outer, total.tensor) if outer else total.tensor
        t.bind(name, Held.of(made, total.order))

    return translate


def log_sum_exp(t: Translation, node: Node) -> None:
    """log(sum(exp(x - m))) + m, where m is the maximum: nothing overflows."""
    x, name = t.settled(t.held(node, 0)), node.outputs[0]
    axes, keep = reduce_axes(t, node, len(x.shape)), bool(node.attributes.get("keepdims", 1))
    steps = Steps(t, name)
    most = reduced(t, f"{name}/maximum", "REDUCE_MAX", x, axes, keep=True)
    powers = steps("EXP", steps("SUB", x.tensor, most.tensor))
    total = reduced(t, f"{name}/sum", "SUM", replace(x, tensor=powers), axes, keep=True)
    made = Held.of(steps("ADD", steps("LOG", total.tensor), most.tensor), x.order)
    if keep:
        t.bind(name, made)
        return
    order = reduced_order(x, axes, keep=False)
    left = [size for axis, size in enumerate(x.shape) if axis not in axes]
    t.bind(name, Held.of(t.builder.reshape(made.tensor, permuted(left, order), name=name), order))


TRANSLATORS: dict[str, Translator] = {
    "GlobalAveragePool": _global("MEAN"),
    "GlobalMaxPool": _global("REDUCE_MAX"),
    "ReduceL1": _of_powers("ABS"),
    "ReduceL2": _of_powers("MUL", "SQRT"),
    "ReduceLogSum": _of_powers("", "LOG"),
    "ReduceLogSumExp": log_sum_exp,
    "ReduceMax": _reduce("REDUCE_MAX"),
    "ReduceMean": _reduce("MEAN"),
    "ReduceMin": _reduce("REDUCE_MIN"),
    "ReduceProd": _reduce("REDUCE_PROD"),
    "ReduceSum": _reduce("SUM"),
    "ReduceSumSquare": _of_powers("MUL"),
}
