"""Normalizations in float32, composed of products, sums and means."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stages.import_model.onnx.operators.elementwise import broadcast_constant
from stages.import_model.onnx.operators.functions import Steps
from stages.import_model.onnx.operators.reductions import reduced
from stages.import_model.onnx.translation import Node, Translation, Translator, axis_in
from stages.import_model.onnx.values import TensorView, plain_order
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused, listed


def batch_normalization(t: Translation, node: Node) -> None:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, as a product and a sum per channel."""
    x = t.materialized(t.computed(node, 0))
    scale, bias, mean, variance = (t.constant(node, at, "its constants").astype(np.float64) for at in range(1, 5))
    factor = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    shape = (-1, *(1,) * (len(x.shape) - 2))
    out = t.destination(node, integers=False)
    assert out is not None
    constants = [
        t.builder.constant(f"{out.name}/{label}", broadcast_constant(values.astype(np.float32).reshape(shape), x))
        for label, values in (("factor", factor), ("shift", bias - mean * factor))
    ]
    result = t.builder.mul(x.tensor, constants[0], name=f"{out.name}/scaled")
    result = t.builder.add(result, constants[1], activation=out.activation, name=out.name)
    t.finish(out, TensorView.of(result, x.order))


def layer_normalization(t: Translation, node: Node) -> None:
    """Normalize over all axes from `axis` on."""
    if any(name in t.readers or name in t.outputs for name in node.outputs[1:] if name):
        raise Refused("also returns its mean or deviation, which is not supported")
    x = t.materialized(t.computed(node, 0))
    first = axis_in(int(node.attributes.get("axis", -1)), len(x.shape))
    _normalized(t, node, x, range(first, len(x.shape)), x.shape[first:])


def instance_normalization(t: Translation, node: Node) -> None:
    """Normalize each channel over the axes after it."""
    x = t.materialized(t.computed(node, 0))
    rank = len(x.shape)
    if rank < 3:
        raise Refused(f"reads {listed(x.shape)}; it must have at least 3 axes")
    _normalized(t, node, x, range(2, rank), (x.shape[1], *(1,) * (rank - 2)))


def rms_normalization(t: Translation, node: Node) -> None:
    """x / sqrt(mean(x^2) + epsilon) * scale, over all axes from `axis` on."""
    x, name = t.materialized(t.computed(node, 0)), node.outputs[0]
    first = axis_in(int(node.attributes.get("axis", -1)), len(x.shape))
    steps = Steps(t, name)
    squares = replace(x, tensor=steps("MUL", x.tensor, x.tensor))
    mean = reduced(t, f"{name}/mean", "MEAN", squares, range(first, len(x.shape)), keep=True)
    moved = steps("ADD", mean.tensor, float(node.attributes.get("epsilon", 1e-5)))
    unit = steps("DIV", x.tensor, steps("SQRT", moved))
    scale = t.builder.constant(
        f"{name}/scale", broadcast_constant(t.constant(node, 1, "the scale").astype(np.float32), x)
    )
    t.bind(name, TensorView.of(steps("MUL", unit, scale), x.order))


def lp_normalization(t: Translation, node: Node) -> None:
    """Divide by the L1 or L2 norm along one axis; by 1 where the norm is 0."""
    x, name, p = t.materialized(t.computed(node, 0)), node.outputs[0], int(node.attributes.get("p", 2))
    axis = axis_in(int(node.attributes.get("axis", -1)), len(x.shape))
    steps = Steps(t, name)
    powers = steps("ABS", x.tensor) if p == 1 else steps("MUL", x.tensor, x.tensor)
    total = reduced(t, f"{name}/sum", "SUM", replace(x, tensor=powers), [axis], keep=True).tensor
    norm = total if p == 1 else steps("SQRT", total)
    t.bind(name, TensorView.of(steps("DIV", x.tensor, _zero_as_one(steps, norm)), x.order))


def group_normalization(t: Translation, node: Node) -> None:
    """Normalize each group of channels; scale and bias are per channel."""
    x, groups = t.plain(t.computed(node, 0)), int(node.attributes["num_groups"])
    channels = x.shape[1]
    if channels % groups:
        raise Refused(f"has {groups} groups, which do not divide {channels} channels")
    name, rows = node.outputs[0], (x.shape[0], groups, -1)
    flat = TensorView.of(t.builder.reshape(x.tensor, rows, name=f"{name}/groups"), plain_order(3))
    unit = t.builder.reshape(_unit(t, node, flat, [2]), x.shape, name=f"{name}/unit")
    steps = Steps(t, name)
    for at, op in ((1, "MUL"), (2, "ADD")):
        values = t.constant(node, at, "its constants").astype(np.float32).reshape(-1)
        if values.size != channels:
            raise Refused(f"has {values.size} numbers for {channels} channels; one per channel is needed")
        per_channel = values.reshape(1, -1, *(1,) * (len(x.shape) - 2))
        unit = steps(op, unit, t.builder.constant(f"{name}/{op.lower()}", per_channel))
    t.bind(name, TensorView.of(unit, x.order))


def mean_variance_normalization(t: Translation, node: Node) -> None:
    """(x - mean) / sqrt(mean((x - mean)^2)), as in ONNX Runtime.

    0 where all x equal their mean.
    """
    x, name = t.materialized(t.computed(node, 0)), node.outputs[0]
    axes = [axis_in(int(axis), len(x.shape)) for axis in node.attributes.get("axes", (0, 2, 3))]
    steps = Steps(t, name)
    centred, variance = _centred(t, steps, x, axes)
    result = steps("DIV", centred, _zero_as_one(steps, steps("SQRT", variance)))
    t.bind(name, TensorView.of(result, x.order))


def _normalized(t: Translation, node: Node, x: TensorView, axes: Sequence[int], shape: Sequence[int]) -> None:
    """Bind (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias.

    shape: of scale and bias.
    """
    name, result = node.outputs[0], _unit(t, node, x, axes)
    steps = [(at, label) for at, label in ((1, "scale"), (2, "bias")) if node.has(at)]
    for at, (position, label) in enumerate(steps, 1):
        values = t.constant(node, position, f"the {label}")
        if values.size != np.prod(shape):
            raise Refused(f"has the {label} {listed(values.shape)} for {listed(shape)}")
        step = t.builder.mul if label == "scale" else t.builder.add
        result_name = name if at == len(steps) else f"{name}/scaled"
        constant = t.builder.constant(
            f"{name}/{label}", broadcast_constant(values.astype(np.float32).reshape(shape), x)
        )
        result = step(result, constant, name=result_name)
    t.bind(name, TensorView.of(result, x.order))


def _unit(t: Translation, node: Node, x: TensorView, axes: Sequence[int]) -> Tensor:
    """(x - mean) / sqrt(mean((x - mean)^2) + epsilon)."""
    steps = Steps(t, node.outputs[0])
    centred, variance = _centred(t, steps, x, axes)
    moved = steps("ADD", variance, float(node.attributes.get("epsilon", 1e-5)))
    return steps("DIV", centred, steps("SQRT", moved))


def _centred(t: Translation, steps: Steps, x: TensorView, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return x - mean, and the mean of its squares.

    mean(x^2) - mean^2 would lose the digits that both terms share.
    """
    centred = steps("SUB", x.tensor, reduced(t, f"{steps.name}/mean", "MEAN", x, axes, keep=True).tensor)
    squares = replace(x, tensor=steps("MUL", centred, centred))
    return centred, reduced(t, f"{steps.name}/variance", "MEAN", squares, axes, keep=True).tensor


def _zero_as_one(steps: Steps, divisor: Tensor) -> Tensor:
    """Return the divisor with 0 replaced by 1."""
    return steps("ADD", divisor, steps.number(steps.truth("EQUAL", divisor, 0.0)))


TRANSLATORS: dict[str, Translator] = {
    "BatchNormalization": batch_normalization,
    "GroupNormalization": group_normalization,
    "InstanceNormalization": instance_normalization,
    "LayerNormalization": layer_normalization,
    "LpNormalization": lp_normalization,
    "MeanVarianceNormalization": mean_variance_normalization,
    "RMSNormalization": rms_normalization,
    "SimplifiedLayerNormalization": rms_normalization,
}
