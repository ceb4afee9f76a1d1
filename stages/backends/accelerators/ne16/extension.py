"""The extended engine: a requantizer that rounds as TFLite does, and a residual addition.

This hardware is assumed: NE16 itself lacks it. A job selects it by bits of conf0 and two words that NE16 leaves
unused:

    conf0[26]  activations and padding value are int8 (as in N-EUREKA)
    conf0[27]  TFLite requantizer: y = clamp(M(acc + bias[c], multiplier[c], shift[c]) + zero_point)
    conf0[28]  M rounds once, else twice (`single` and `double` of stages.ir.layers.rounding)
    conf0[29]  residual addition
    word 8     address of the residual tensor, with the strides of the output (words 10 and 11)
    word 14    address of the layer's parameter block

scale_ptr has int32 multipliers, scale_shift_ptr int8 exponents (positive: to the left), scale_bias_ptr int32 biases
that are added *before* the multiplication, all in L1. The output is one byte, int8 or uint8 as conf0[23] says.

The block, int32 each: zero_point, minimum, maximum of the requantized sum; with a residual addition, which is
TFLite's ADD (rounding twice): the residual's zero point; multiplier and shift of the requantized sum; of the
residual; of the total; zero point, minimum and maximum of the total.

    total = M((y - zero_point) << 20, …) + M((residual - its zero point) << 20, …);   clamp(M(total, …) + zero point)

Assumed cycles: a column's multiplier takes one 32-bit product per cycle as with 32-bit scales, or four of 8 bits as
with 8-bit ones. Rounding adds two stages. The bytes of a residual are read at the rate at which outputs are
written. Each value takes two products of 8 bits and one of 32. The block is read once for a job.
"""

from dataclasses import astuple, dataclass
from math import ceil

import numpy as np

LEFT_SHIFT = 20
BLOCK_CYCLES = 12
ROUNDING_CYCLES = 2


def residual_cycles(channels: int) -> int:
    """Return the cycles of one subtile: its reads of 3x3 pixels, and their products."""
    return 3 + 9 * ceil(channels / 32) + 2 * ceil(channels / 4) + channels


@dataclass(frozen=True)
class Residual:
    """The ADD after a layer, as stages.ir.operators.arithmetic.Add.

    The layer's output is one of its inputs.
    """

    zero_point: int
    own_multiplier: int
    own_shift: int
    multiplier: int
    shift: int
    total_multiplier: int
    total_shift: int
    output_zero_point: int
    minimum: int
    maximum: int


@dataclass(frozen=True)
class Parameters:
    """A layer's parameter block."""

    zero_point: int
    minimum: int
    maximum: int
    residual: Residual | None = None

    def block(self) -> bytes:
        """Return its bytes in L1."""
        values = [self.zero_point, self.minimum, self.maximum]
        if self.residual is not None:
            values += astuple(self.residual)
        return np.array(values, "<i4").tobytes()


BLOCK_BYTES = 4 * 3
RESIDUAL_BLOCK_BYTES = 4 * 13
