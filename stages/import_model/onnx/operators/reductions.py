"""Reductions over axes; means also between integers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stages.import_model.onnx.operators.functions import Steps
from stages.import_model.onnx.translation import Node, Out, Translation, Translator, axis_in
from stages.import_model.onnx.values import Dequantized, Order, TensorView, permuted
from stages.ir.operators.operation import Refused


def reduce_axes(t: Translation, node: Node, rank: int) -> list[int]:
    """Return the axes of a reduction of a tensor with `rank` axes."""
    axes = node.attributes.get("axes")
    if axes is None and node.has(1):
        axes = t.constant_integers(node, 1, "the axes")
    if not axes:
        if node.attributes.get("noop_with_empty_axes", 0):
            raise Refused("has no axes to reduce over")
        axes = range(rank)
    return sorted({axis_in(int(axis), rank) for axis in axes})


def reduced_order(x: TensorView, axes: Sequence[int], keep: bool) -> Order:
    """Return the order of the remaining axes of x."""
    remaining = [axis for axis in range(len(x.shape)) if axis not in axes]
    return x.order if keep else tuple(remaining.index(axis) for axis in x.order if axis in remaining)


def _reduce(op: str) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        x, out = _reduced(t, node, op)
        axes, keep = reduce_axes(t, node, len(x.shape)), bool(node.attributes.get("keepdims", 1))
        emit_reduction(t, out, op, x, axes, keep=keep, sums="float")

    return translate


def _reduced(t: Translation, node: Node, op: str) -> tuple[TensorView, Out]:
    """Return input and destination of a reduction; integers for a mean between integers."""
    value, out = t.value(node, 0), t.destination(node, integers=True)
    if op == "MEAN" and isinstance(value, Dequantized) and out is not None and out.activation == "none":
        return t.materialized(value.integers), out
    return t.materialized(t.computed(node, 0, integers=op in ("REDUCE_MAX", "REDUCE_MIN"))), Out(node.outputs[0])


def emit_reduction(
    t: Translation, out: Out, op: str, x: TensorView, axes: list[int], *, keep: bool, **rule: Any
) -> None:
    """Append a reduction, and its rule between integers."""
    result = reduced(t, out.name, op, x, axes, keep=keep, quant=out.quant)
    if out.quant is not None:
        t.rule(**rule)
    t.finish(out, result)


def reduced(
    t: Translation,
    name: str,
    op: str,
    x: TensorView,
    axes: Sequence[int],
    *,
    keep: bool,
    quant: tuple[float, int] | None = None,
) -> TensorView:
    """Append a reduction over ONNX axes; return the view of its result."""
    stored_axes = sorted(x.order.index(axis) for axis in axes)
    shape = [
        1 if position in stored_axes else size
        for position, size in enumerate(x.tensor.shape)
        if keep or position not in stored_axes
    ]
    inputs = [x.tensor, t.builder.constant(f"{name}/axes", np.array(stored_axes, np.int32))]
    result = t.builder.emit(op, inputs, shape, quant, name, "ReducerOptions", {"keepDims": keep})
    return TensorView.of(result, reduced_order(x, axes, keep))


def _global_pool(op: str) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        x, out = _reduced(t, node, op)
        emit_reduction(t, out, op, x, list(range(2, len(x.shape))), keep=True, sums="float")

    return translate


def _power_sum(inner: str, outer: str = "") -> Translator:
    """Return the translator of a sum of absolute values or squares, and a function of it."""

    def translate(t: Translation, node: Node) -> None:
        x, name = t.materialized(t.computed(node, 0)), node.outputs[0]
        axes, keep = reduce_axes(t, node, len(x.shape)), bool(node.attributes.get("keepdims", 1))
        steps = Steps(t, name)
        powers = (
            x.tensor if not inner else steps("MUL", x.tensor, x.tensor) if inner == "MUL" else steps(inner, x.tensor)
        )
        total = reduced(t, f"{name}/sum" if outer else name, "SUM", replace(x, tensor=powers), axes, keep=keep)
        result = steps(outer, total.tensor) if outer else total.tensor
        t.bind(name, TensorView.of(result, total.order))

    return translate


def log_sum_exp(t: Translation, node: Node) -> None:
    """Translate ReduceLogSumExp as log(sum(exp(x - m))) + m with the maximum m."""
    x, name = t.materialized(t.computed(node, 0)), node.outputs[0]
    axes, keep = reduce_axes(t, node, len(x.shape)), bool(node.attributes.get("keepdims", 1))
    steps = Steps(t, name)
    maximum = reduced(t, f"{name}/maximum", "REDUCE_MAX", x, axes, keep=True)
    powers = steps("EXP", steps("SUB", x.tensor, maximum.tensor))
    total = reduced(t, f"{name}/sum", "SUM", replace(x, tensor=powers), axes, keep=True)
    result = TensorView.of(steps("ADD", steps("LOG", total.tensor), maximum.tensor), x.order)
    if keep:
        t.bind(name, result)
        return
    order = reduced_order(x, axes, keep=False)
    remaining_sizes = [size for axis, size in enumerate(x.shape) if axis not in axes]
    t.bind(name, TensorView.of(t.builder.reshape(result.tensor, permuted(remaining_sizes, order), name=name), order))


TRANSLATORS: dict[str, Translator] = {
    "GlobalAveragePool": _global_pool("MEAN"),
    "GlobalMaxPool": _global_pool("REDUCE_MAX"),
    "ReduceL1": _power_sum("ABS"),
    "ReduceL2": _power_sum("MUL", "SQRT"),
    "ReduceLogSum": _power_sum("", "LOG"),
    "ReduceLogSumExp": log_sum_exp,
    "ReduceMax": _reduce("REDUCE_MAX"),
    "ReduceMean": _reduce("MEAN"),
    "ReduceMin": _reduce("REDUCE_MIN"),
    "ReduceProd": _reduce("REDUCE_PROD"),
    "ReduceSum": _reduce("SUM"),
    "ReduceSumSquare": _power_sum("MUL"),
}
