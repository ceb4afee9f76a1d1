"""What the arm_dsp kernels share: a layer's arithmetic as they want it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.backends.kernels.eight_bit import INT8_OFFSET, Range, Sums, sums

if TYPE_CHECKING:
    from stages.backends.cortex_m.kernels.arm_dsp.rounding import Requantization
    from stages.ir.graph import LayerView


CLAMP = ("zero_point", "floor", "low")  # which most structures have


@dataclass(frozen=True)
class Arithmetic(Sums):
    """The sums of a layer, 0 in channels that only give the zero point, and their `scale` of rounding.py."""

    scale: Requantization


def arithmetic(view: LayerView, *, long: bool = False) -> Arithmetic:
    """The constants of a convolution or fully connected layer.

    Activations reach the kernel as int8 (uint8 minus 128). `long`: the kernel has the long rounding. Raises ValueError
    where rounding.py has no exact one.
    """
    import numpy as np

    from stages.backends.cortex_m.kernels.arm_dsp.rounding import requantization

    made = sums(view, INT8_OFFSET[view.inputs[0].dtype])
    scale = requantization(made.multiplier, made.shift, made.range, view.op.rounding, long=long)
    dead = scale.scale[:, -1] == 0
    live = {
        "weights": np.where(dead[:, None], made.weight_zero_point, made.weights),
        "bias": np.where(dead, 0, made.bias),
        "range": Range(np.where(dead, 0, made.range.low), np.where(dead, 0, made.range.high)),
    }
    return Arithmetic(**(vars(made) | live), scale=scale)


def rounding_suffix(view: LayerView) -> str:
    """Of the functions that round a layer of a long scale, or once."""
    if view.op.rounding == "single":
        return "_once"
    return "_long" if arithmetic(view, long=True).scale.long else ""


def splat(value: int) -> int:
    """A byte in every byte of an int32."""
    word = (value & 0xFF) * 0x01010101
    return word - (1 << 32) if word >= 1 << 31 else word


def clamps(view: LayerView) -> dict[str, int]:
    """The fields CLAMP.

    A result is max(clamp(y + zero_point, 0, 255), floor) - floor + low. The zero point is moved so that the upper bound
    falls on 255, where usat16 stops; floor and low are in every byte.
    """
    op = view.op
    up = 255 - op.act_max
    return {"zero_point": op.output_zero_point + up, "floor": splat(op.act_min + up), "low": splat(op.act_min)}
