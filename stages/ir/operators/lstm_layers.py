"""Base class of LSTM layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.ir.layers import LayerOp

if TYPE_CHECKING:
    from stages.ir.layers import Array, Tensor


class LstmLayer(LayerOp):
    """Base of all LSTM layers.

    `time_major`: axes are steps, sequences, numbers; else sequences, steps, numbers.
    """

    depth: int
    units: int
    time_major: bool = False

    @property
    def named(self) -> str:
        """Name in rules and reports."""
        return "lstm"

    def products(self, out: Tensor) -> int:
        """Multiply-accumulates of the four gates."""
        return out.elements * 4 * (self.depth + self.units)

    def steps(self, x: Array) -> Array:
        """Data as [steps, sequences, numbers], and back."""
        return x if self.time_major else x.swapaxes(0, 1)
