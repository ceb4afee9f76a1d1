"""Pad, in its modes."""

from collections.abc import Sequence

import numpy as np

from stages.import_model.onnx.operators.movement import Mover, gather_constant
from stages.import_model.onnx.translation import Node, Translation, axis_in
from stages.import_model.onnx.values import Dequantized, TensorView
from stages.ir.models.onnx_names import LOWERED
from stages.ir.operators.operation import Refused


def pad(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate Pad: constant, reflect, edge or wrap."""
    x = t.materialized(x)
    pairs, mode = _pairs(t, node, x), node.attributes.get("mode", "constant")
    if mode == "reflect":
        return _mirror_pad(t, node, x, pairs)
    if mode in ("edge", "wrap"):
        return _edge_or_wrap(t, node, x, pairs, mode)
    if mode != "constant":
        raise Refused(f"pads in the mode {mode}; constant, reflect, edge and wrap are supported")
    return _constant(t, node, x, pairs)


def _pairs(t: Translation, node: Node, x: TensorView) -> list[tuple[int, int]]:
    """Return the pads before and after each ONNX axis."""
    rank = len(x.shape)
    amounts = list(node.attributes["pads"]) if "pads" in node.attributes else t.constant_integers(node, 1, "the pads")
    axes = (
        [axis_in(axis, rank) for axis in t.constant_integers(node, 3, "the axes")] if node.has(3) else list(range(rank))
    )
    if len(amounts) != 2 * len(axes):
        raise Refused(f"has {len(amounts)} pads for {len(axes)} axes; two per axis are needed")
    pairs = [(0, 0)] * rank
    for axis, before, after in zip(axes, amounts[: len(axes)], amounts[len(axes) :], strict=True):
        if min(before, after) < 0:
            raise Refused(f"pads axis {axis} by {before} and {after}; neither may be negative")
        pairs[axis] = (before, after)
    return pairs


def _mirror_pad(t: Translation, node: Node, x: TensorView, pairs: Sequence[tuple[int, int]]) -> TensorView:
    """Append a MIRROR_PAD that does not repeat the edge."""
    for axis, (size, amounts) in enumerate(zip(x.shape, pairs, strict=True)):
        if max(amounts) >= size:
            raise Refused(f"reflects {max(amounts)} elements of axis {axis}, which has {size}")
    stored_pads = [pairs[axis] for axis in x.order]
    shape = [size + sum(pair) for size, pair in zip(x.tensor.shape, stored_pads, strict=True)]
    inputs = [x.tensor, t.builder.constant(f"{node.outputs[0]}/pads", np.array(stored_pads, np.int32))]
    result = t.builder.emit("MIRROR_PAD", inputs, shape, None, node.outputs[0], "MirrorPadOptions", {"mode": 0})
    return TensorView.of(result, x.order)


def _edge_or_wrap(t: Translation, node: Node, x: TensorView, pairs: Sequence[tuple[int, int]], mode: str) -> TensorView:
    """Repeat the edge elements, or wrap around."""
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            indices = np.arange(-before, x.shape[axis] + after)
            indices = np.clip(indices, 0, x.shape[axis] - 1) if mode == "edge" else indices % x.shape[axis]
            x = gather_constant(t, x, axis, indices.tolist(), node.outputs[0])
    return x


def _constant(t: Translation, node: Node, x: TensorView, pairs: Sequence[tuple[int, int]]) -> TensorView:
    value = float(node.attributes.get("value", 0.0))
    if node.has(2):
        value = float(t.constant(node, 2, "the value").reshape(-1)[0])
    stored_pads = [pairs[axis] for axis in x.order]
    zero, quant = 0.0, (x.tensor.scale[0], x.tensor.zero_point[0]) if x.tensor.scale else None
    if quant is not None:
        padding_integer = _padding_integer(t, node, value, *quant)
        if padding_integer is None:
            x, quant = t.reordered(t.computed(node, 0), x.order), None
        else:
            zero, value = quant[1], padding_integer
    if value == zero:
        return TensorView.of(t.builder.pad(x.tensor, stored_pads, name=node.outputs[0]), x.order)
    dtype = np.float32 if quant is None else np.int8
    inputs = [
        x.tensor,
        t.builder.constant(f"{node.outputs[0]}/pads", np.array(stored_pads, np.int32)),
        t.builder.constant(f"{node.outputs[0]}/value", np.array([value], dtype), *(quant or (None,))),
    ]
    shape = [size + sum(pair) for size, pair in zip(x.tensor.shape, stored_pads, strict=True)]
    return TensorView.of(t.builder.emit("PADV2", inputs, shape, None, node.outputs[0], "PadV2Options"), x.order)


def _padding_integer(t: Translation, node: Node, value: float, scale: float, zero_point: int) -> int | None:
    """Return the int8 padding value; None if no integer represents the real number."""
    if isinstance(t.value(node, 0), Dequantized):
        nearest = np.clip(np.rint(np.float32(value) / np.float32(scale)), -128 - zero_point, 127 - zero_point)
        after = t.only_reader(node.outputs[0], "QuantizeLinear")
        requantized = after is not None and t.parameters(after, 1, 2)
        if requantized != (scale, zero_point) and np.float32(nearest) * np.float32(scale) != np.float32(value):
            return None
        return int(nearest) + zero_point
    return int(value) - (LOWERED if t.integer_type(node.inputs[0]) == np.uint8 else 0)


MOVES: dict[str, Mover] = {"Pad": pad}
