"""A layer's weights as the engine multiplies them: less their zero point, in as few bits as hold them, and what folds.

The engine sums bytes times weights. With x a byte and w a weight less its zero point,

    sum of (x - zero_point) * w + bias  =  sum of x * w  +  (bias - zero_point * sum of w)

and what is in the second bracket is one number for each output channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stages.kernels.eight_bit import centred_weights

if TYPE_CHECKING:
    from stages.graph import LayerView

Array = npt.NDArray[Any]
LEAST_BITS = 2


@dataclass(frozen=True, eq=False)
class Weights:
    """`rows`: int16[output channels, depth], as stages.kernels.eight_bit.weight_rows has them."""

    rows: Array

    @cached_property
    def offset(self) -> int:
        """What is added to every stored weight: the least weight."""
        return int(self.rows.min())

    @cached_property
    def bits(self) -> int:
        """Of a stored weight, 2 to 8."""
        return max((int(self.rows.max()) - self.offset).bit_length(), LEAST_BITS)

    @cached_property
    def sums(self) -> Array:
        """int64[output channels]."""
        return np.asarray(self.rows.sum(axis=1, dtype=np.int64))


class _Known:
    """Weights of arrays that were asked for. An array is kept, so that no other one has its identity."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], tuple[Array, Weights]] = {}

    def of(self, view: LayerView) -> Weights:
        array = view.constant("weights")
        key = (id(array), view.op.weight_zero_point)
        if key not in self._found:
            self._found[key] = (array, Weights(centred_weights(view)))
        return self._found[key][1]


weights_of = _Known().of


def folded_bias(view: LayerView) -> Array:
    """int64[output channels]: what is added to sums of bytes times weights."""
    bias = view.constant("bias").astype(np.int64).reshape(-1) if view.has("bias") else np.int64(0)
    return np.asarray(bias - view.op.input_zero_point * weights_of(view).sums)
