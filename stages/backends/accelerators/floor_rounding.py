"""Find the constants of the rounding `floor` that change the results of the fewest sums.

An engine without a rounding step computes (sum * multiplier + offset) >> shift in 32 bits. No reference kernel does,
and the multiplier has few useful bits next to 20-bit sums. The best constants are counted over all sums that a layer's
weights and inputs allow. Exact 8-bit results are a step function of the sum, and so are the engine's. T[k] is the first
sum with an exact result of k or more, S[k] the first with such a result of the engine. Results differ for the sums
between T[k] and S[k], for all k:

    result  k+1            ___________           differ: sum over k of |S[k] - T[k]|
            k       ______|
                    T[k]  T[k+1]    sum ->       S[k] = ceil((k * 2^shift - offset) / multiplier)

(A sum whose results differ by two counts twice.) For some shifts and multipliers near the real one, the search tries
offsets that put a step of the engine exactly onto one of the layer's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.backends.kernels.eight_bit import Range
from stages.ir.arithmetic.fixed_point import INT32_MAX, INT32_MIN, scale_and_floor
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

_SHIFTS, _AROUND = 2, 1  # shifts from the largest on, multipliers on either side of the nearest
_FEW = 12  # offsets that every multiplier is tried with; the best one then with all
_BESIDE = 260  # results, less a zero point, and an offset of a few, are below it
_CHUNK = 32  # channels at a time
_RATIOS = 6  # pairs of weights of a sum of two


@dataclass(frozen=True)
class MultiplierLimits:
    """Limits of the engine: multiplier, shift, and bits of products and totals with sign."""

    multiplier: int = (1 << 32) - 1
    shift: int = 31
    bits: int = 32


@dataclass(frozen=True)
class Breakpoints:
    """Exact results of channels as breakpoints.

    first        int64[C, K]: the first sum, from `least` to `most` + 1, whose result is at least `results[k]`
    results      int64[K], less the output's zero point, rising by one
    least, most  int64[C]: the reachable sums
    real         float64[C]: approximate factor of the sums
    """

    first: Array
    results: Array
    least: Array
    most: Array
    real: Array

    def part(self, channels: slice) -> Breakpoints:
        """Return the breakpoints of these channels."""
        return Breakpoints(
            self.first[channels], self.results, self.least[channels], self.most[channels], self.real[channels]
        )


@dataclass(frozen=True)
class ScaleConstants:
    """Best constants by channel, int64[C].

    Of `reachable` sums, `differing` have another result, by at most `largest`.
    """

    multiplier: Array
    offset: Array
    shift: Array
    differing: Array
    reachable: Array
    largest: Array


def breakpoints(
    exact: Callable[[Array], Array], low: int, high: int, zero_point: int, least: Array, most: Array, real: Array
) -> Breakpoints:
    """Return the breakpoints of `exact`, which maps sums to results and never falls.

    `exact` maps int64[n, C] to results from `low` to `high`. `least` and `most` are int64[C], `real` is float64[C].
    `zero_point` is approximately the result of a sum of 0.
    """
    results = np.arange(low + 1, high + 1, dtype=np.int64)
    wanted = results[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        guess = np.nan_to_num((wanted - zero_point - 0.5) / real)
    near = np.clip(guess, least - 4.0, most + 4.0).astype(np.int64)
    # result(below) < wanted <= result(above), where those are sums; else one before the first or beyond the last.
    below, above = np.clip(near - 3, least - 1, most + 1), np.clip(near + 3, least - 1, most + 1)
    inside = (exact(np.clip(below, least, most)) < wanted) | (below < least)
    inside &= (exact(np.clip(above, least, most)) >= wanted) | (above > most)
    below, above = np.where(inside, below, least - 1), np.where(inside, above, most + 1)
    while (gap := above - below > 1).any():
        middle = (above + below) >> 1
        reached = exact(np.clip(middle, least, most)) >= wanted
        above, below = np.where(gap & reached, middle, above), np.where(gap & ~reached, middle, below)
    return Breakpoints(np.maximum(above, least).T, results - zero_point, least, most, real)


def nearest(steps: Breakpoints, magnitude: Array, limits: MultiplierLimits) -> ScaleConstants:
    """Return the best constants of each channel.

    `magnitude`, int64[C], bounds the engine's factor.
    Raise ValueError if no multiplier keeps products and totals within the engine's bits.
    """
    parts = [
        _nearest(steps.part(part), magnitude[part], limits)
        for part in (slice(start, start + _CHUNK) for start in range(0, len(steps.real), _CHUNK))
    ]
    fields = ScaleConstants.__dataclass_fields__
    return ScaleConstants(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))


def _nearest(steps: Breakpoints, magnitude: Array, limits: MultiplierLimits) -> ScaleConstants:
    multipliers, shifts = _candidates(steps, magnitude, limits)
    pairs = list(zip(multipliers, shifts, strict=True))
    paid = np.stack([_differing(steps, *pair, _offsets(steps, *pair, _FEW)).min(axis=1) for pair in pairs])
    channels, best = np.arange(len(steps.real)), paid.argmin(axis=0)
    multiplier, shift = multipliers[best, channels], shifts[best, channels]
    offsets = _offsets(steps, multiplier, shift, 0)
    paid = _differing(steps, multiplier, shift, offsets)
    at = paid.argmin(axis=1)
    multiplier, offset, shift = _final_constants(steps, multiplier, offsets[channels, at], shift)
    _check_limits(steps, multiplier, offset, shift, magnitude, limits)
    return ScaleConstants(
        multiplier,
        offset,
        shift,
        np.where(multiplier == 0, 0, paid[channels, at]).astype(np.int64),
        steps.most - steps.least + 1,
        _largest(steps, multiplier, offset, shift),
    )


def _check_limits(
    steps: Breakpoints, multiplier: Array, offset: Array, shift: Array, magnitude: Array, limits: MultiplierLimits
) -> None:
    """Raise ValueError if products or totals, with a zero point, exceed the engine's bits."""
    ends = np.stack([steps.least, steps.most]) * multiplier + offset
    largest = np.maximum(np.abs(ends).max(axis=0) + (255 << shift), magnitude * multiplier)
    if (largest >= 1 << limits.bits - 1).any():
        raise ValueError(f"sums up to {int(magnitude.max()):,} leave no bits for a multiplier")


def _candidates(steps: Breakpoints, magnitude: Array, limits: MultiplierLimits) -> tuple[Array, Array]:
    """Return multipliers and shifts to try for each channel, int64[n, C] each."""
    # A total is a sum times the multiplier, and a zero point, an offset of a step and some more times 2^shift.
    sums = np.maximum(np.maximum(np.abs(steps.least), np.abs(steps.most)), magnitude)
    limit = (1 << limits.bits - 1) - 1
    largest = np.floor(np.log2(limit / (steps.real * sums + _BESIDE)))
    largest = np.minimum(largest, limits.shift).astype(np.int64)
    if (largest < 0).any():
        raise ValueError(f"sums up to {int(sums.max()):,} times {steps.real.max():g} exceed {limits.bits} bits")
    multipliers, shifts = [], []
    for lower in range(_SHIFTS):
        shift = np.maximum(largest - lower, 0)
        most = np.minimum((limit - (_BESIDE << shift)) // np.maximum(sums, 1), limits.multiplier)
        middle = np.rint(np.ldexp(steps.real, shift.astype(np.int32)))
        for more in range(-_AROUND, _AROUND + 1):
            multipliers.append(np.clip(middle + more, 1, np.maximum(most, 1)).astype(np.int64))
            shifts.append(shift)
    return np.stack(multipliers), np.stack(shifts)


def _offsets(steps: Breakpoints, multiplier: Array, shift: Array, count: int) -> Array:
    """Return offsets that put a step of the engine onto one of the channel's, int64[C, n].

    `count` of them, 0 for all.
    """
    exact = (steps.results << shift[:, np.newaxis]) - multiplier[:, np.newaxis] * steps.first
    is_step = (steps.first > steps.least[:, np.newaxis]) & (steps.first <= steps.most[:, np.newaxis])
    # Where a channel has fewer steps the last of them again; without any the middle of the breakpoints.
    numbers = np.cumsum(is_step, axis=1)
    order = np.argsort(np.where(is_step, exact, np.iinfo(np.int64).max), axis=1, kind="stable")
    counts = np.maximum(numbers[:, -1:], 1)
    total = exact.shape[1]
    ranks = (np.arange(count or total) * counts) // (count or total)
    return np.asarray(np.take_along_axis(exact, np.take_along_axis(order, ranks, axis=1), axis=1))


def _differing(steps: Breakpoints, multiplier: Array, shift: Array, offsets: Array) -> Array:
    """Return how many sums differ with each offset, float64[C, n]. Numbers stay below 2^53."""
    wanted = np.ldexp(steps.results.astype(np.float64), shift[:, np.newaxis].astype(np.int32))
    exact = steps.first.astype(np.float64)
    sums, first = np.empty(offsets.shape), np.empty((offsets.shape[1], exact.shape[1]))
    for channel, apart in enumerate(offsets[:, :, np.newaxis]):  # one at a time stays in the cache
        np.subtract(wanted[channel], apart, out=first)
        first /= multiplier[channel]
        np.ceil(first, out=first)
        np.clip(first, steps.least[channel], steps.most[channel] + 1, out=first)
        first -= exact[channel]
        np.abs(first, out=first)
        first.sum(axis=1, out=sums[channel])
    return sums


def _final_constants(steps: Breakpoints, multiplier: Array, offset: Array, shift: Array) -> tuple[Array, Array, Array]:
    """Return the final constants.

    Channels with only one result get a multiplier of 0 and that result.
    """
    is_constant = ((steps.first <= steps.least[:, np.newaxis]) | (steps.first > steps.most[:, np.newaxis])).all(axis=1)
    result = steps.results[0] - 1 + (steps.first <= steps.least[:, np.newaxis]).sum(axis=1)
    return (
        np.where(is_constant, 0, multiplier),
        np.where(is_constant, result, offset),
        np.where(is_constant, 0, shift),
    )


def _largest(steps: Breakpoints, multiplier: Array, offset: Array, shift: Array) -> Array:
    """Return the largest difference of a result."""
    low = steps.results[0] - 1
    wanted = steps.results << shift[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        smallest = np.ceil((wanted - offset[:, np.newaxis]) / multiplier[:, np.newaxis])
    least, most = steps.least[:, np.newaxis], steps.most[:, np.newaxis]
    at = np.concatenate([steps.first, np.clip(np.nan_to_num(smallest), least, most).astype(np.int64)], axis=1)
    at = np.concatenate([np.clip(at, least, most), np.clip(at - 1, least, most)], axis=1)
    ours = scale_and_floor(at, multiplier[:, np.newaxis], offset[:, np.newaxis], shift[:, np.newaxis])
    theirs = low + np.stack(
        [np.searchsorted(first, sums, side="right") for first, sums in zip(steps.first, at, strict=True)]
    )
    return np.asarray(np.abs(np.clip(ours, low, steps.results[-1]) - theirs).max(axis=1))


def weighted(view: LayerView, limits: MultiplierLimits) -> ScaleConstants:
    """Return the best constants of a layer with weights for the rounding `floor`.

    The engine multiplies sums of bytes times weights, to which zero points and bias are added as constants. Raises
    ValueError for sums beyond 32 bits, and for scales that leave no bits for a multiplier.
    """
    from stages.backends.kernels.eight_bit import accumulator_range, centred_weights

    op, weights = view.op, centred_weights(view).astype(np.int64)
    bias, sums = _bias(view, len(weights)), reachable(view)
    if (largest := int(sums.size.max())) > INT32_MAX:
        raise ValueError(f"sums up to {largest:,} exceed 32 bits")
    raw = accumulator_range(weights, np.zeros_like(bias), 0, 255).size

    def exact(totals: Array) -> Array:
        return op.requantized(view, totals - bias).astype(np.int64)

    real = _real(view, len(weights))
    steps = breakpoints(exact, op.act_min, op.act_max, op.output_zero_point, sums.low, sums.high, real)
    return nearest(steps, raw, limits)


def reachable(view: LayerView) -> Range:
    """Return the range of sums that the layer's weights, bias and inputs allow."""
    from stages.backends.kernels.eight_bit import accumulator_range, centred_weights

    weights, bounds = centred_weights(view).astype(np.int64), np.iinfo(view.inputs[0].dtype)
    low, high = (int(bound) - view.op.input_zero_point for bound in (bounds.min, bounds.max))
    return accumulator_range(weights, _bias(view, len(weights)), low, high)


def _bias(view: LayerView, channels: int) -> Array:
    bias = view.constant("bias").reshape(-1) if view.has("bias") else 0
    return np.zeros(channels, np.int64) + bias


def _real(view: LayerView, channels: int) -> Array:
    """Return the real factor of the sums."""
    if view.op.rounding == "steps":
        return np.array(
            [_slope(view.constant("steps")[row, 1:].astype(np.int64)) for row in view.constant("step_rows")]
        )
    multiplier, shift = (view.constant(role).reshape(-1).astype(np.float64) for role in ("multiplier", "shift"))
    return np.broadcast_to(np.maximum(multiplier, 1) * 2.0 ** (shift - 31), (channels,))


def _slope(steps: Array) -> float:
    """Return the results per sum, from the largest sums below results that some 32-bit sum has."""
    inside = steps[(steps > INT32_MIN) & (steps < INT32_MAX)]
    apart = int(inside[-1] - inside[0]) if len(inside) else 0
    return (len(inside) - 1) / apart if apart else 1.0


@dataclass(frozen=True)
class Sum:
    """ADD or SUB as positive weights of both inputs and one product with the rounding `floor`.

    Of `reachable` pairs of inputs `differing` have another result, by `largest` at most.
    """

    weights: tuple[int, int]
    multiplier: int
    offset: int
    shift: int
    differing: int
    reachable: int
    largest: int


def sum_of_two(view: LayerView, limits: MultiplierLimits, span: int = 255) -> Sum:
    """Return the best constants of an ADD or SUB.

    Weights, together with 0, span at most `span`.
    Raise ValueError if scales differ so much that totals exceed the engine's bits.
    """
    op = view.op
    values = [np.arange(256) + int(np.iinfo(tensor.dtype).min) for tensor in view.inputs]
    grid = np.meshgrid(*values, indexing="ij")
    exact = op.compute(view, *(x.astype(t.dtype) for x, t in zip(grid, view.inputs, strict=True))).astype(np.int64)
    first, second = (x.astype(np.int64) - zero for x, zero in zip(grid, op.zero_points, strict=True))
    scales = [multiplier * 2.0**shift for multiplier, shift in zip(op.multipliers, op.shifts, strict=True)]
    output = op.output_multiplier * 2.0 ** (op.output_shift - 31 + op.left_shift - 31)
    candidates: list[Sum] = []
    for factor, other_factor in _ratios(scales[0] / scales[1], span, together=op.sign < 0):
        total = factor * first + op.sign * other_factor * second
        real = (scales[0] / factor if scales[0] > scales[1] else scales[1] / other_factor) * output
        candidates += [_sum(op, exact, total, (factor, other_factor), *pair) for pair in _products(total, real, limits)]
    return min(candidates, key=lambda candidate: candidate.differing)


def _ratios(wanted: float, span: int, *, together: bool) -> list[tuple[int, int]]:
    """Return pairs of positive weights with the best quotients, best first.

    `together`: their sum is at most the span.
    """
    ones = np.arange(1, span + 1)
    others = np.clip(np.rint(ones / wanted), 1, span).astype(np.int64)
    off = np.abs(ones / others / wanted - 1)
    off[(ones + others if together else np.maximum(ones, others)) > span] = np.inf
    # Of equal quotients the largest weights: none is better, but they are nearest to 8 bits.
    order = np.lexsort((-ones, np.round(off, 12)))
    ratios: dict[float, tuple[int, int]] = {}
    for at in order:
        ratios.setdefault(round(ones[at] / others[at], 12), (int(ones[at]), int(others[at])))
        if len(ratios) == _RATIOS:
            break
    return list(ratios.values())


def _products(total: Array, real: float, limits: MultiplierLimits) -> list[tuple[int, int]]:
    """Return multipliers and shifts to try."""
    bound = 2 * float(np.abs(total).max()) + 514 / real
    most = min((2.0 ** (limits.bits - 1) - 1) // bound, limits.multiplier)
    shift = min(int(np.floor(np.log2((most + 0.5) / real))), limits.shift) if most > 0 else -1
    if shift < 0:
        raise ValueError(f"sums up to {int(np.abs(total).max()):,} times {real:g} exceed {limits.bits} bits")
    middle = round(real * 2**shift)
    return [(min(max(middle + more, 1), int(most)), shift) for more in range(-_AROUND, _AROUND + 1)]


def _sum(op: Any, exact: Array, total: Array, weights: tuple[int, int], multiplier: int, shift: int) -> Sum:
    """Return the sum with the best offset."""
    wanted = exact - op.output_zero_point
    least, most = (wanted << shift) - multiplier * total, (wanted + 1 << shift) - multiplier * total
    # Beyond the bounds every offset is right on that side.
    far = np.int64(1 << 62)
    least = np.sort(np.where(exact == op.act_min, -far, least), axis=None)
    most = np.sort(np.where(exact == op.act_max, far, most), axis=None)
    agreeing = np.searchsorted(least, least, side="right") - np.searchsorted(most, least, side="right")
    agreeing[least == -far] = 0
    at = int(agreeing.argmax())
    offset = int(least[at]) if least[at] != -far else 0
    computed = scale_and_floor(total, multiplier, offset, shift) + op.output_zero_point
    apart = np.abs(np.clip(computed, op.act_min, op.act_max) - exact)
    return Sum(weights, multiplier, offset, shift, int((apart > 0).sum()), apart.size, int(apart.max()))
