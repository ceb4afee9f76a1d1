"""What the rvp kernels share: a layer's arithmetic as they want it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.kernels.eight_bit import INT8_OFFSET, sums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.graph import LayerView
    from stages.kernels.rvp.packing import Rounders


@dataclass(frozen=True)
class Arithmetic:
    """weights are int8 values [channels, depth] in int64; bias has all that zero points add to an accumulator."""

    weights: NDArray[np.int64]
    weight_zero_point: int
    bias: NDArray[np.int64]
    multiplier: NDArray[np.int32]
    rounders: Rounders


def arithmetic(view: LayerView, weights: NDArray[np.int64], *, signed_activations: bool) -> Arithmetic:
    """The constants of a convolution or fully connected layer; `weights` are the layer's own values, [channels, depth].

    `signed_activations`: uint8 activations reach the kernel as int8 (minus 128). Raises ValueError for a shift that the
    kernels do not take.
    """
    from stages.kernels.rvp import packing

    made = sums(view, weights, INT8_OFFSET[view.inputs[0].dtype] if signed_activations else 0)
    round_ = packing.rounders_once if view.op.rounding == "single" else packing.rounders
    rounders = round_(made.multiplier, made.shift, made.range)
    return Arithmetic(made.weights, made.weight_zero_point, made.bias, made.multiplier, rounders)


def clip_word(view: LayerView) -> int:
    """The layer's output zero point and bounds as the kernels' clip argument."""
    from stages.kernels.rvp import packing

    op, unsigned = view.op, view.outputs[0].dtype == "uint8"
    return packing.clip_word(op.output_zero_point, op.act_min, op.act_max, unsigned=unsigned)
