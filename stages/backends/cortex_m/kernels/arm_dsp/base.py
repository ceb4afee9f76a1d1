"""Layer arithmetic in the form that the arm_dsp kernels share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.backends.cortex_m.kernels.arm_dsp.rounding import requantization
from stages.backends.kernels.eight_bit import INT8_OFFSET, Range, Sums, sums
from stages.ir.graph import LayerView
from stages.support.lazy import np

if TYPE_CHECKING:
    from stages.backends.cortex_m.kernels.arm_dsp.rounding import Requantization


CLAMP = ("zero_point", "floor", "low")  # which most structures have


@dataclass(frozen=True)
class Arithmetic(Sums):
    """Sums of a layer and their `scale` (rounding.py).

    Channels that only yield the zero point have sums of 0.
    """

    scale: Requantization


def arithmetic(view: LayerView, *, long: bool = False) -> Arithmetic:
    """Return the constants of a convolution or fully connected layer.

    Activations reach the kernel as int8 (uint8 minus 128). `long` allows the long rounding. Raises ValueError if no
    rounding of rounding.py is exact.
    """
    layer_sums = sums(view, INT8_OFFSET[view.inputs[0].dtype])
    scale = requantization(layer_sums.multiplier, layer_sums.shift, layer_sums.range, view.op.rounding, long=long)
    dead = scale.scale[:, -1] == 0
    live = {
        "weights": np.where(dead[:, None], layer_sums.weight_zero_point, layer_sums.weights),
        "bias": np.where(dead, 0, layer_sums.bias),
        "range": Range(np.where(dead, 0, layer_sums.range.low), np.where(dead, 0, layer_sums.range.high)),
    }
    return Arithmetic(**(vars(layer_sums) | live), scale=scale)


def rounding_suffix(view: LayerView) -> str:
    """Return the function suffix for layers with a long scale or a single rounding."""
    if view.op.rounds_once:
        return "_once"
    return "_long" if arithmetic(view, long=True).scale.long else ""


def splat(value: int) -> int:
    """Repeat a byte in all four bytes of an int32."""
    word = (value & 0xFF) * 0x01010101
    return word - (1 << 32) if word >= 1 << 31 else word


def clamps(view: LayerView) -> dict[str, int]:
    """Return the fields CLAMP.

    A result is max(clamp(y + zero_point, 0, 255), floor) - floor + low. The zero point is shifted so that the upper
    bound becomes 255, where usat16 saturates. `floor` and `low` fill every byte.
    """
    op = view.op
    up = 255 - op.act_max
    return {"zero_point": op.output_zero_point + up, "floor": splat(op.act_min + up), "low": splat(op.act_min)}
