"""What the layers of an LSTM have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.ir.operators.layer import LayerOp

if TYPE_CHECKING:
    from stages.ir.graph import Tensor
    from stages.ir.operators.layer import Array


class LstmLayer(LayerOp):
    """What all forms have. `time_major`: axes are steps, sequences, numbers; else sequences, steps, numbers."""

    depth: int
    units: int
    time_major: bool = False

    @property
    def named(self) -> str:
        return "lstm"

    def products(self, out: Tensor) -> int:
        return out.elements * 4 * (self.depth + self.units)

    def steps(self, x: Array) -> Array:
        """The data as [steps, sequences, numbers], and back."""
        return x if self.time_major else x.swapaxes(0, 1)
