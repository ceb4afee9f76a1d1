"""Base class of recurrent layers."""

from typing import ClassVar

from stages.ir.layers import Array, LayerOp, Tensor
from stages.support.lazy import np


def sigmoid(values: Array) -> Array:
    """Return 1 / (1 + exp(-x))."""
    with np.errstate(over="ignore"):
        return np.float32(1) / (np.float32(1) + np.exp(-values))


class LstmLayer(LayerOp):
    """Base of LSTM and other recurrent layers.

    `time_major`: axes are steps, sequences, numbers; else sequences, steps, numbers.
    """

    alias: ClassVar[str] = "lstm"
    depth: int
    units: int
    time_major: bool = False

    def macs_of(self, out: Tensor) -> int:
        """Multiply-accumulates of the four gates."""
        return out.elements * 4 * (self.depth + self.units)

    def steps(self, x: Array) -> Array:
        """Data as [steps, sequences, numbers], and back."""
        return x if self.time_major else x.swapaxes(0, 1)
