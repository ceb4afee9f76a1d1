"""Warn about layers that are much slower than the same layer with usual parameters.

Usual are int8 activations, int8 weights without a zero point, and a multiplier with the operator's default rounding.
Fast kernels are made for these. Other layers are exact too, so only their instructions show the difference.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import fsum

from stages.base import StageError
from stages.ir.graph import Graph, LayerView
from stages.ir.layers import Array, LayerOp
from stages.ir.operators.lstm import Lstm
from stages.ir.operators.matmul import BatchMatmul
from stages.ir.operators.products import Conv2D, DepthwiseConv2D, FullyConnected
from stages.ir.operators.wide_lstm import WideLstm
from stages.support.lazy import np
from stages.support.messages import escape
from stages.support.messages.wording import several
from stages.tensorize.pass_context import PassContext
from stages.tensorize.select import Choice, choose

_TIMES = 2  # minimum factor over the usual layer
_SHARE = 0.05  # minimum share of the network's instructions that is lost
_HALF, _SHIFT = 1 << 30, -6  # a typical multiplier

_STEPS = (
    "no 32-bit multiplier rounds as LiteRT does with their scales; per_channel: false or more data change the scales"
)
_ONCE = (
    "sums are rounded once, as in ONNX Runtime; quantize: {rounding: twice} uses fast kernels, except for QLinear "
    "operators"
)
_WEIGHTS = "weights are uint8 or have a zero point; symmetric int8 ones are faster"
_WIDE = "activations have 16 bits; use 16 bits only for the layers that need them (keep_int16)"


@dataclass(frozen=True)
class _Slow:
    name: str
    cost: float
    usual: float
    reasons: tuple[str, ...]


def slow_layers(graph: Graph, choices: Mapping[int, Choice], context: PassContext) -> tuple[str, ...]:
    """Return a warning for all layers that are slow for the same reasons."""
    total = fsum(choice.cost or 0.0 for choice in choices.values())
    layers = list(_slow(graph, choices, context))
    warnings = []
    for reasons in dict.fromkeys(layer.reasons for layer in layers):
        same = [layer for layer in layers if layer.reasons == reasons]
        cost, usual = (fsum(getattr(layer, key) for layer in same) for key in ("cost", "usual"))
        if cost - usual >= _SHARE * total:
            names = several([escape.quoted(layer.name.partition(";")[0]) for layer in same])
            warnings.append(
                f"slow: {names}: {cost:,.0f} instead of some {usual:,.0f} {context.unit}: {'; '.join(reasons)}"
            )
    return tuple(warnings)


def _slow(graph: Graph, choices: Mapping[int, Choice], context: PassContext) -> Iterator[_Slow]:
    for index, choice in choices.items():
        view = graph.view(graph.layers[index])
        reasons = tuple(_unusual(view))
        if not reasons or choice.cost is None or context.is_ruled(view):
            continue
        usual = _cost(_usual(view), context)
        if usual is not None and choice.cost >= _TIMES * usual:
            yield _Slow(view.layer.name, choice.cost, usual, reasons)


def _unusual(view: LayerView) -> Iterator[str]:
    """Yield the reasons why fast kernels may not support the layer."""
    op = view.op
    if isinstance(op, WideLstm) or (isinstance(op, BatchMatmul) and op.rounding == "wide"):
        yield _WIDE
    if not isinstance(op, Conv2D | DepthwiseConv2D | FullyConnected) or not view.has("weights"):
        return
    if op.rounding == "steps":
        yield _STEPS
    if op.rounds_once and type(op).model_fields["rounding"].default != op.rounding:
        yield _ONCE
    if op.weight_zero_point or view.constant("weights").dtype == "uint8":
        yield _WEIGHTS
    if view.inputs[0].dtype == "int16":
        yield _WIDE


def _usual(view: LayerView) -> LayerView:
    """Return the layer with usual parameters. Its constants are arbitrary."""
    op, out = view.op, view.outputs[0]
    if isinstance(op, WideLstm):
        return _usual_lstm(view, op)
    if isinstance(op, BatchMatmul):
        bounds = {"act_min": max(op.act_min, -128), "act_max": min(op.act_max, 127)}
        return _eight_bit(view, op.model_copy(update={**bounds, "shift": _SHIFT, "rounding": "double"}), {})
    weights = view.constant("weights").astype(np.int64) - op.weight_zero_point
    units = op.units if isinstance(op, FullyConnected) else op.out_channels
    weights = np.clip(weights, -127, 127).astype(np.int8)
    if isinstance(op, Conv2D) and op.groups == op.in_channels and op.kernel_layout == "OHWI":
        # TFLite has no depthwise convolution with a weight zero point, so such layers are convolutions.
        fields = op.model_dump(exclude={"op", "groups", "kernel_layout"})
        op = DepthwiseConv2D(**fields, depth_multiplier=op.out_channels // op.in_channels)
        weights = weights.transpose(3, 1, 2, 0)
    constants = {
        "weights": weights,
        "multiplier": np.full(units, _HALF, np.int32),
        "shift": np.full(units, _SHIFT, np.int32),
    }
    if view.has("bias"):
        constants["bias"] = view.constant("bias").astype(np.int32)
    low, high = (0, 255) if out.dtype == "uint8" else (-128, 127)
    changes = {"weight_zero_point": 0, "rounding": type(op).model_fields["rounding"].default}
    bounds = {"act_min": max(op.act_min, low), "act_max": min(op.act_max, high)}
    return _eight_bit(view, op.model_copy(update={**changes, **bounds}), constants)


def _usual_lstm(view: LayerView, op: WideLstm) -> LayerView:
    """Return the LSTM on int8. Its cells have 16 bits in any case."""
    scales = ((_HALF, _SHIFT),) * 4
    eight = Lstm(
        depth=op.depth,
        units=op.units,
        time_major=op.time_major,
        input_zero_point=0,
        state_zero_point=0,
        output_zero_point=0,
        input_scales=scales,
        recurrent_scales=scales,
        scale=(_HALF, _SHIFT),
        cell_bits=4,
    )
    constants = {role: view.constant(role) for role in ("input_weights", "recurrent_weights")}
    return _eight_bit(view, eight, {**constants, "bias": np.zeros((4, op.units), np.int32)})


def _eight_bit(view: LayerView, op: LayerOp, arrays: Mapping[str, Array]) -> LayerView:
    """Return the layer with another operator and constants, on int8 instead of int16."""
    kept = view.layer.state[1:]  # the cells of an LSTM
    tensors = {
        name: tensor.model_copy(update={"dtype": "int8"}) if tensor.dtype == "int16" and name not in kept else tensor
        for name, tensor in view.tensors.items()
    }
    names = {role: f"usual/{role}" for role in arrays}
    layer = view.layer.model_copy(update={"op": op, "constants": names})
    return replace(view, layer=layer, tensors=tensors, arrays={names[role]: array for role, array in arrays.items()})


def _cost(view: LayerView, context: PassContext) -> float | None:
    """Return the instructions of the layer's best kernel, None if unknown."""
    known = [context.cost_on_engine(view)]
    try:
        cost = choose(view, context.target, context.kernels, (), context.costs).cost
    except StageError:
        cost = None
    known += [] if cost is None else [cost]
    return None if min(known) == float("inf") else min(known)
