"""Layer arithmetic in the form that the rvp kernels share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.backends.kernels.eight_bit import INT8_OFFSET, Sums, sums
from stages.backends.riscv.kernels.rvp import one_rounding, packing, rounding
from stages.ir.graph import LayerView

if TYPE_CHECKING:
    from stages.backends.riscv.kernels.rvp.one_rounding import OneRounding
    from stages.backends.riscv.kernels.rvp.rounding import Rounders


LANE = 4  # bytes of a lane of a register
CLIPS_AS_INT8 = 0x007F80  # the bounds of a clip word that need no instruction


@dataclass(frozen=True)
class Arithmetic(Sums):
    """Sums of a layer, and the constants that round them (rounding.py)."""

    rounders: Rounders


def arithmetic(view: LayerView, *, signed_activations: bool, any_shift: bool = False) -> Arithmetic:
    """Return the constants of a convolution or fully connected layer.

    `signed_activations`: uint8 activations reach the kernel as int8 (minus 128). `any_shift`: a layer that rounds twice
    may have any shift. Raises ValueError for an unsupported shift.
    """
    layer_sums = sums(view, INT8_OFFSET[view.inputs[0].dtype] if signed_activations else 0)
    constants = (layer_sums.multiplier, layer_sums.shift, layer_sums.range)
    if view.op.rounds_once:
        return Arithmetic(**vars(layer_sums), rounders=rounding.rounders_once(*constants))
    return Arithmetic(**vars(layer_sums), rounders=rounding.rounders(*constants, any_shift=any_shift))


def one_rounding_of(view: LayerView, layer_sums: Sums) -> OneRounding:
    """Return the single-rounding multiplications of the channels that have one."""
    op, offset = view.op, INT8_OFFSET[view.outputs[0].dtype]
    bounds = op.act_min - offset, op.act_max - offset
    constants = layer_sums.multiplier, layer_sums.shift, layer_sums.range
    return one_rounding.one_rounding(*constants, op.output_zero_point - offset, bounds, op.rounding)


def clip_word(view: LayerView) -> int:
    """Return the kernels' clip argument: the layer's output zero point and bounds."""
    op, unsigned = view.op, view.outputs[0].dtype == "uint8"
    return packing.clip_word(op.output_zero_point, op.act_min, op.act_max, unsigned=unsigned)


def is_bounded(view: LayerView) -> bool:
    """Return whether outputs need clamp instructions beyond saturation to int8."""
    return clip_word(view) >> 8 != CLIPS_AS_INT8


def rounds_once(view: LayerView) -> bool:
    """Return whether no output is below the zero point: one multiplication may round them."""
    return bool(view.op.act_min >= view.op.output_zero_point)
