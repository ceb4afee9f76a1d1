"""Layout of a fully connected layer for dot.S: units in pairs, depth in fours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.backends.cortex_m.kernels.arm_dsp.base import CLAMP, arithmetic
from stages.backends.kernels.eight_bit import weight_zero_point
from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView
from stages.support.lazy import np

if TYPE_CHECKING:
    from stages.backends.cortex_m.kernels.arm_dsp.packing import Packing


PAIRS = 3  # of units in a block
FIELDS = Structure("arm_dsp_dot_fields", ("fours", *CLAMP))  # of dot.S


def layer_form(view: LayerView) -> Packing:
    """Return the form of the layer's packed weights."""
    from stages.backends.cortex_m.kernels.arm_dsp import packing

    constants, units = arithmetic(view), view.op.units
    return packing.form(constants, padded_pairs(view) % units)


def fours(view: LayerView) -> int:
    """Groups of four elements of the depth."""
    return -(-int(view.op.depth) // 4)


def padded_pairs(view: LayerView) -> np.ndarray:
    """Return [pairs, 2]: the units of each pair; `units` pads an odd number."""
    return np.arange(view.op.units + view.op.units % 2).reshape(-1, 2)


def copies(view: LayerView) -> bool:
    """Return whether rows of x are copied before multiplication."""
    return view.inputs[0].dtype == "uint8" or view.op.depth % 4 != 0 or weight_zero_point(view) != 0
