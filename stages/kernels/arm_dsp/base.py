"""What the arm_dsp kernels share: a layer's arithmetic as they want it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.kernels.eight_bit import INT8_OFFSET, Range, sums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.graph import LayerView
    from stages.kernels.arm_dsp.rounding import Requantization


@dataclass(frozen=True)
class Arithmetic:
    """A layer's constants; arrays are int64 by channel.

    weights            int8 values [channels, depth], 0 in channels that only give the zero point
    weight_zero_point  what is subtracted from them
    bias               with all that the input's zero point adds
    scale              of rounding.py
    range              of the accumulators
    """

    weights: NDArray[np.int64]
    weight_zero_point: int
    bias: NDArray[np.int64]
    scale: Requantization
    range: Range


def arithmetic(view: LayerView, weights: NDArray[np.int64], *, long: bool = False) -> Arithmetic:
    """The constants of a convolution or fully connected layer; `weights` are the layer's own values, [channels, depth].

    Activations reach the kernel as int8 (uint8 minus 128). `long`: the kernel has the long rounding. Raises ValueError
    where rounding.py has no exact one.
    """
    import numpy as np

    from stages.kernels.arm_dsp.rounding import requantization

    made = sums(view, weights, INT8_OFFSET[view.inputs[0].dtype])
    scale = requantization(made.multiplier, made.shift, made.range, view.op.rounding, long=long)
    dead = scale.scale[:, -1] == 0
    signed = np.where(dead[:, None], made.weight_zero_point, made.weights)
    live = Range(np.where(dead, 0, made.range.low), np.where(dead, 0, made.range.high))
    return Arithmetic(signed, made.weight_zero_point, np.where(dead, 0, made.bias), scale, live)


def splat(value: int) -> int:
    """A byte in every byte of an int32."""
    word = (value & 0xFF) * 0x01010101
    return word - (1 << 32) if word >= 1 << 31 else word


def clamp_fields(view: LayerView) -> tuple[int, int, int]:
    """zero_point, floor and low of the kernels' fields.

    A result is max(clamp(y + zero_point, 0, 255), floor) - floor + low. The zero point is moved so that the upper bound
    falls on 255, where usat16 stops; floor and low are in every byte.
    """
    op = view.op
    up = 255 - op.act_max
    return op.output_zero_point + up, splat(op.act_min + up), splat(op.act_min)
