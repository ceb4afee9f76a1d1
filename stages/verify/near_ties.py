"""Near ties: sums that ONNX Runtime may round to a neighbour of our result, with bounds.

Between DequantizeLinear and QuantizeLinear, ONNX Runtime sums float32 numbers. Firmline sums integers,

    T = sum((x - zero_x) * (w - zero_w)) + bias,     y = round(T * r) + zero_y,     r = scale_x * scale_w / scale_y

With u = 2^-24, ONNX Runtime's value before rounding is V with

    |V - T * r| <= g * A * r,     A = sum(|x - zero_x| * |w - zero_w|) + |bias|,     g = k * u / (1 - k * u),  k = n + 6

for n products. Roundings: one for each of x, w and bias, one per product, at most n for a sum of n + 1 numbers in any
order, with or without fused multiply-add, and one for the division by scale_y (Higham, "Accuracy and Stability of
Numerical Algorithms", lemma 3.1). Relu and Clip never enlarge a difference. Our multiplier is r within 2^-31 of it.
A float bias is rounded by at most half a unit of the sum. So both results are equal unless T * r is within

    e = g * A * r + |T| * r * 2^-30 [+ r / 2] [+ 2^(shift - 1)]

of a half: a near tie. The last term is for layers that round twice, first to 2^-shift (stages.ir.layers.rounding).
In near ties the results differ by at most one if e is below a half.

Integer sums (QLinearConv): V is T as float32 times a float32 multiplier, so g is 4 * u, and A is |T|.

Softmax: V is p / scale_y, with p an element's share of a row of n. Exponents differ by at most 4 * u * R, where R is
the row's largest magnitude, exponentials by 8 units each, sums and quotients by n + 4: g = u * (8 * R + n + 24). Ours
is within 2^-27 and n * 2^-31 of p, and 2^-30 / scale_y.

Linear Resize with one scale: four products of numbers below 2^8 and exact shares, so 16 * u * 2^8 is enough.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.ir.arithmetic.pairs import Pair
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.interpolation import FRACTION_BITS, ResizeBilinear
from stages.ir.operators.onnx_softmax import NearestSoftmax

_UNIT = 2.0**-24


@dataclass(frozen=True)
class _Magnitudes:
    """View of a layer whose weights are replaced by |weight - zero point|."""

    view: LayerView

    def constant(self, role: str) -> Array:
        """Return the magnitudes of a constant."""
        weights = self.view.constant(role).astype(np.int64)
        return np.asarray(np.abs(weights - self.view.op.weight_zero_point))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.view, name)


def other_pairs(view: LayerView, inputs: Sequence[Array], ours: Array, rule: Mapping[str, Any]) -> Array:
    """Return elements of ADD, SUB or MUL whose inputs no multipliers compute exactly."""
    quants = [(tensor.scale, tensor.zero_point) for tensor in (*view.inputs, view.outputs[0])]
    op = view.op
    pair = Pair(op.op, quants[0], quants[1], quants[2], op.act_min, op.act_max, rule.get("lowered"))
    a, b = (array.astype(np.int64) for array in np.broadcast_arrays(*inputs))
    return np.asarray(pair.expected(a, b) != ours)


def near_ties(view: LayerView, inputs: Sequence[Array], rule: Mapping[str, Any]) -> Array | None:
    """Return which elements of the layer's output are near ties; None without such sums.

    rule: the operator's rule in import's tensors.json.
    """
    op = view.op
    if rule.get("sums") == "shares":
        return _of_shares(view, inputs[0]) if isinstance(op, NearestSoftmax) else None
    if rule.get("sums") == "resize":
        return _of_resize(view, inputs[0]) if isinstance(op, ResizeBilinear) else None
    if "sums" not in rule or not hasattr(op, "sums"):
        return None
    bias = view.constant("bias").astype(np.int64) if view.has("bias") else 0
    total = op.sums(view, *inputs) + bias
    multiplier, shift = (np.asarray(array, np.float64) for array in op.scaling(view))
    real = np.abs(multiplier * 2.0 ** (shift - 31))
    if rule["sums"] == "integer":
        bound = 4 * _UNIT * np.abs(total).astype(np.float64)
    else:
        terms = op.terms(view.outputs[0])
        growth = (terms + 6) * _UNIT / (1 - (terms + 6) * _UNIT)
        bound = growth * (_absolute(view, inputs) + np.abs(bias)).astype(np.float64)
    first_rounding = np.where(shift < 0, 2.0 ** (shift - 1), 0.0) if op.rounds_twice else 0.0
    scaled = total * real
    error = (bound + np.abs(total) * 2.0**-30 + (0.5 if rule.get("rounded_bias") else 0.0)) * real + first_rounding
    fraction = scaled - np.floor(scaled)
    return np.asarray(np.abs(fraction - 0.5) <= error).reshape(view.outputs[0].shape)


def _of_shares(view: LayerView, x: Array) -> Array:
    """Return the near ties of a Softmax over the last axis."""
    source, out = view.inputs[0], view.outputs[0]
    reals = (x.astype(np.float64) - source.zero_point) * source.scale
    powers = np.exp(reals - reals.max(axis=-1, keepdims=True))
    shares = powers / powers.sum(axis=-1, keepdims=True) / out.scale
    count, largest = x.shape[-1], np.abs(reals).max(axis=-1, keepdims=True)
    growth = _UNIT * (8 * largest + count + 24) + 2.0**-27 + count * 2.0**-31
    fraction = shares - np.floor(shares)
    return np.asarray(np.abs(fraction - 0.5) <= growth * shares + 2.0**-30 / out.scale)


def _of_resize(view: LayerView, x: Array) -> Array:
    """Return the near ties of a linear Resize of int8."""
    total = view.op.weighted(view, x) / 2.0 ** (2 * FRACTION_BITS)
    return np.asarray(np.abs(total - np.floor(total) - 0.5) <= 16 * _UNIT * 2**8)


def _absolute(view: LayerView, inputs: Sequence[Array]) -> Array:
    """Return A of the module's docstring, without the bias."""
    op = view.op
    if hasattr(op, "zero_points"):
        points: dict[str, Any] = {"zero_points": (0,) * len(inputs)}
        zeros = op.zero_points
    else:
        points = {name: 0 for name in ("input_zero_point", "weight_zero_point") if name in type(op).model_fields}
        zeros = (op.input_zero_point,)
    centred = [np.abs(x.astype(np.int64) - zero) for x, zero in zip(inputs, zeros, strict=True)]
    magnitudes: Any = _Magnitudes(view)
    return np.asarray(op.model_copy(update=points).sums(magnitudes, *centred))
