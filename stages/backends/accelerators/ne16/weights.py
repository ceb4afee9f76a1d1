"""A layer's weights as the engine multiplies them: zero point removed, in few bits.

The engine sums bytes times weights. With x a byte and w a weight less its zero point,

    sum of (x - zero_point) * w + bias  =  sum of x * w  +  (bias - zero_point * sum of w)

and the second bracket is one number for each output channel.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from stages.backends.accelerators.floor_rounding import MultiplierLimits, ScaleConstants, Sum, sum_of_two, weighted
from stages.backends.kernels.eight_bit import centred_weights
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

T = TypeVar("T")
LEAST_BITS = 2


@dataclass(frozen=True, eq=False)
class Weights:
    """`rows`: int16[output channels, depth], ordered as eight_bit.weight_rows."""

    rows: Array

    @cached_property
    def offset(self) -> int:
        """The least weight. The engine adds it to every stored weight."""
        return int(self.rows.min())

    @cached_property
    def bits(self) -> int:
        """Bits of a stored weight, 2 to 8."""
        return max((int(self.rows.max()) - self.offset).bit_length(), LEAST_BITS)

    @cached_property
    def sums(self) -> Array:
        """Sum of each output channel's weights, int64[output channels]."""
        return np.asarray(self.rows.sum(axis=1, dtype=np.int64))


def folded_bias(view: LayerView, weights: Weights) -> Array:
    """Return the addend of sums of bytes times weights, int64[output channels]."""
    bias = view.constant("bias").astype(np.int64).reshape(-1) if view.has("bias") else np.int64(0)
    return np.asarray(bias - view.op.input_zero_point * weights.sums)


class WeightCache:
    """Results derived from constants, each computed once.

    It keeps the arrays alive, so that their ids stay unique.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[tuple[Array, ...], Any]] = {}

    def weights(self, view: LayerView) -> Weights:
        """Return the weights of a layer that has some."""
        key = (view.op.weight_zero_point,)
        return self._once("weights", key, [view.constant("weights")], lambda: Weights(centred_weights(view)))

    def rounders(self, view: LayerView) -> Array | None:
        """Return rounders for the core's P extension, int64[output channels].

        None if a channel has none.
        """
        return self._once("rounders", view.op, _constants(view), lambda: _rounders(view))

    def nearest(self, view: LayerView, engine: MultiplierLimits) -> ScaleConstants | str:
        """Return the `floor` constants of a layer with weights, or why it has none."""
        op, bounds = view.op, np.iinfo(view.inputs[0].dtype)
        # The same in whichever type the data are: all differences to zero points are.
        limits = [limit - op.output_zero_point for limit in (op.act_min, op.act_max)]
        key = (op.rounding, op.weight_zero_point, int(bounds.min) - op.input_zero_point, *limits, engine)
        return self._once("nearest", key, _constants(view), lambda: _or_reason(lambda: weighted(view, engine)))

    def sum(self, view: LayerView, engine: MultiplierLimits) -> Sum | str:
        """Return the `floor` constants of an ADD or SUB, or why it has none."""
        types = tuple(tensor.dtype for tensor in (*view.inputs, *view.outputs))
        return self._once("sum", (view.op, types, engine), [], lambda: _or_reason(lambda: sum_of_two(view, engine)))

    def _once(self, what: str, key: Hashable, arrays: Sequence[Array], find: Callable[[], T]) -> T:
        known_key = (what, key, *map(id, arrays))
        if known_key not in self._known:
            self._known[known_key] = (tuple(arrays), find())
        result: T = self._known[known_key][1]
        return result


def _constants(view: LayerView) -> list[Array]:
    return [view.constant(role) for role in sorted(view.layer.constants)]


def _or_reason(find: Callable[[], T]) -> T | str:
    try:
        return find()
    except ValueError as error:
        return str(error)


def _rounders(view: LayerView) -> Array | None:
    from stages.backends.kernels.eight_bit import sums
    from stages.backends.riscv.kernels.rvp.rounding import rounders, rounders_once

    layer_sums = sums(view, 0)
    find_rounders = rounders_once if view.op.rounds_once else rounders
    try:
        short = find_rounders(layer_sums.multiplier, layer_sums.shift, layer_sums.range).short
    except ValueError:
        return None
    return None if (short < 0).any() else short
