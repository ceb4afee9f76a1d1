"""What the rvp kernels share: a layer's arithmetic as they want it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.kernels.eight_bit import INT8_OFFSET, Sums, sums

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.rvp.rounding import Rounders


@dataclass(frozen=True)
class Arithmetic(Sums):
    """The sums of a layer, and their second roundings."""

    rounders: Rounders


def arithmetic(view: LayerView, *, signed_activations: bool) -> Arithmetic:
    """The constants of a convolution or fully connected layer.

    `signed_activations`: uint8 activations reach the kernel as int8 (minus 128). Raises ValueError for a shift that the
    kernels do not take.
    """
    from stages.kernels.rvp import rounding

    made = sums(view, INT8_OFFSET[view.inputs[0].dtype] if signed_activations else 0)
    round_ = rounding.rounders_once if view.op.rounding == "single" else rounding.rounders
    return Arithmetic(**vars(made), rounders=round_(made.multiplier, made.shift, made.range))


def clip_word(view: LayerView) -> int:
    """The layer's output zero point and bounds as the kernels' clip argument."""
    from stages.kernels.rvp import packing

    op, unsigned = view.op, view.outputs[0].dtype == "uint8"
    return packing.clip_word(op.output_zero_point, op.act_min, op.act_max, unsigned=unsigned)
