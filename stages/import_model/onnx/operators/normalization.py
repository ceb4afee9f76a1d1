"""Normalizations of real numbers, as products, sums and means."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stages.import_model.onnx.operators.elementwise import laid
from stages.import_model.onnx.translation import Node, Translation, axis_in
from stages.import_model.onnx.values import Held
from stages.models.tflite_writer import Tensor
from stages.operators.operation import Refused, listed


def batch_normalization(t: Translation, node: Node) -> None:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, of each channel: a product and a sum."""
    x = t.settled(t.held(node, 0))
    scale, bias, mean, variance = (t.stored(node, at, "its constants").astype(np.float64) for at in range(1, 5))
    factor = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    shape = (-1, *(1,) * (len(x.shape) - 2))
    out = t.destination(node, integers=False)
    assert out is not None
    constants = [
        t.builder.constant(f"{out.name}/{what}", laid(values.astype(np.float32).reshape(shape), x))
        for what, values in (("factor", factor), ("shift", bias - mean * factor))
    ]
    made = t.builder.mul(x.tensor, constants[0], name=f"{out.name}/scaled")
    made = t.builder.add(made, constants[1], activation=out.activation, name=out.name)
    t.finish(out, Held.of(made, x.order))


def layer_normalization(t: Translation, node: Node) -> None:
    """Over all axes from one on, by the mean and the variance that are found there."""
    if any(name in t.readers or name in t.outputs for name in node.outputs[1:] if name):
        raise Refused("gives its mean or deviation as well")
    x = t.settled(t.held(node, 0))
    first = axis_in(int(node.attributes.get("axis", -1)), len(x.shape))
    _normalized(t, node, x, range(first, len(x.shape)), x.shape[first:])


def instance_normalization(t: Translation, node: Node) -> None:
    """Of each channel over the axes behind it."""
    x = t.settled(t.held(node, 0))
    rank = len(x.shape)
    if rank < 3:
        raise Refused(f"reads {listed(x.shape)}; there are axes behind the channels")
    _normalized(t, node, x, range(2, rank), (x.shape[1], *(1,) * (rank - 2)))


def _normalized(t: Translation, node: Node, x: Held, axes: Sequence[int], shape: Sequence[int]) -> None:
    """(x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias; `shape` is that of scale and bias."""
    name = node.outputs[0]
    places = np.array(sorted(x.order.index(axis) for axis in axes), np.int32)

    def constant(what: str, values: np.ndarray) -> Tensor:
        return t.builder.constant(f"{name}/{what}", np.ascontiguousarray(values, np.float32))

    def mean(of: Tensor, what: str) -> Tensor:
        over = t.builder.constant(f"{name}/{what} axes", places)
        kept = [1 if at in places else size for at, size in enumerate(of.shape)]
        return t.builder.emit("MEAN", [of, over], kept, None, f"{name}/{what}", "ReducerOptions", {"keepDims": True})

    centred = t.builder.sub(x.tensor, mean(x.tensor, "mean"), name=f"{name}/centred")
    variance = mean(t.builder.mul(centred, centred, name=f"{name}/squares"), "variance")
    epsilon = constant("epsilon", np.array([node.attributes.get("epsilon", 1e-5)]))
    deviation = t.builder.add(variance, epsilon, name=f"{name}/moved variance")
    deviation = t.builder.emit("SQRT", [deviation], deviation.shape, None, f"{name}/deviation")
    made = t.builder.emit("DIV", [centred, deviation], x.tensor.shape, None, f"{name}/unit", "DivOptions")
    steps = [(at, what) for at, what in ((1, "scale"), (2, "bias")) if node.has(at)]
    for at, (position, what) in enumerate(steps, 1):
        values = t.stored(node, position, f"the {what}")
        if values.size != np.prod(shape):
            raise Refused(f"has the {what} {listed(values.shape)} for {listed(shape)}")
        step = t.builder.mul if what == "scale" else t.builder.add
        called = name if at == len(steps) else f"{name}/scaled"
        made = step(made, constant(what, laid(values.reshape(shape), x)), name=called)
    t.bind(name, Held.of(made, x.order))


TRANSLATORS: dict[str, Callable[[Translation, Node], None]] = {
    "BatchNormalization": batch_normalization,
    "InstanceNormalization": instance_normalization,
    "LayerNormalization": layer_normalization,
}
