"""Softmax and LogSoftmax, in float32 and between integers."""

from dataclasses import replace
from math import prod
from typing import Any

from stages.import_model.onnx.translation import Node, Out, Translation, Translator, axis_in
from stages.import_model.onnx.values import Dequantized, TensorView

_SMALLEST_SCALE = 2.0**-24  # of the result of a Softmax between integers


def softmax(t: Translation, node: Node) -> None:
    """Translate Softmax over one axis; on integers between dequantize and quantize."""
    value, out = t.value(node, 0), t.quantized(node.outputs[0])
    has_scale = out is not None and out.quant is not None and _SMALLEST_SCALE <= out.quant[0] <= 1
    if isinstance(value, Dequantized) and out is not None and has_scale:
        integer_softmax(t, *softmax_rows(t, node, value.integers, _axis(t), t.opset), out, sums="shares")
        return
    x, shape = softmax_rows(t, node, t.computed(node, 0), _axis(t), t.opset)
    result = t.builder.softmax(x.tensor, name=node.outputs[0])
    t.bind(node.outputs[0], replace(TensorView.of(result, x.order), shape=shape))


def log_softmax(t: Translation, node: Node) -> None:
    """Translate LogSoftmax over one axis, of real numbers."""
    x, shape = softmax_rows(t, node, t.computed(node, 0), _axis(t), t.opset)
    result = t.builder.emit("LOG_SOFTMAX", [x.tensor], x.tensor.shape, None, node.outputs[0], "LogSoftmaxOptions")
    t.bind(node.outputs[0], replace(TensorView.of(result, x.order), shape=shape))


def _axis(t: Translation) -> int:
    """Return the default axis. Before opset 13, Softmax covers all axes from `axis` on."""
    return -1 if t.opset >= 13 else 1


def integer_softmax(t: Translation, x: TensorView, shape: tuple[int, ...], out: Out, **rule: Any) -> None:
    """Emit an int8 Softmax; `x` and `shape` come from `softmax_rows`."""
    result = t.builder.emit("SOFTMAX", [x.tensor], x.tensor.shape, out.quant, out.name, "SoftmaxOptions", {"beta": 1.0})
    t.rule(**rule)
    t.finish(out, replace(TensorView.of(result, x.order), shape=shape))


def softmax_rows(
    t: Translation, node: Node, x: TensorView, axis: int, opset: int
) -> tuple[TensorView, tuple[int, ...]]:
    """Return `x` with the Softmax axis last in memory, and its shape in ONNX.

    axis: the default if the node has no `axis`. opset: before 13, Softmax covers all axes from `axis` on.
    """
    rank = len(x.shape)
    axis = axis_in(int(node.attributes.get("axis", axis)), rank)
    if opset < 13 and any(size != 1 for size in x.shape[axis + 1 :]):
        plain = t.plain(x)
        rows = (prod(x.shape[:axis]), prod(x.shape[axis:]))
        return TensorView.of(t.builder.reshape(plain.tensor, rows, name=f"{node.outputs[0]}/rows"), (0, 1)), x.shape
    x = t.materialized(x)
    if x.order[-1] != axis:
        x = t.reordered(x, (*(other for other in range(rank) if other != axis), axis))
    return x, x.shape


TRANSLATORS: dict[str, Translator] = {"LogSoftmax": log_softmax, "Softmax": softmax}
