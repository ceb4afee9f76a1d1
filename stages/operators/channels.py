"""What is known of a tensor's channels, the indices along its last axis, before anything runs.

Operators of the graph tell three things of them (`LayerOp.reach`, `LayerOp.carries`, `LayerOp.narrowed`); with these
stages.simplify finds the channels that are constant and leaves them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    from stages.graph import LayerView, Tensor

    Array = npt.NDArray[Any]

NEW = -1
"""In `LayerOp.carries`: the output's channel is not one of this input's."""


@dataclass(frozen=True, eq=False)
class Reach:
    """The least and the most that the elements of each channel can be, int64[C]. Bounds, not always reached."""

    least: Array
    most: Array

    @property
    def is_constant(self) -> Array:
        """Which channels can be one number only, bool[C]."""
        constant: Array = self.least == self.most
        return constant

    @classmethod
    def of_type(cls, tensor: Tensor) -> Reach:
        """All values of an integer type."""
        import numpy as np

        limits, channels = np.iinfo(tensor.dtype), channels_of(tensor)
        return cls(np.full(channels, limits.min, np.int64), np.full(channels, limits.max, np.int64))

    @classmethod
    def of_values(cls, values: Array) -> Reach:
        """What an array in logical order holds."""
        import numpy as np

        rows = values.reshape(-1, values.shape[-1] if values.ndim else 1).astype(np.int64)
        return cls(rows.min(axis=0), rows.max(axis=0))

    def of(self, channels: Array) -> Reach:
        """The bounds of some channels, in that order."""
        return Reach(self.least[channels], self.most[channels])

    def spread(self, channels: int) -> Reach:
        """So many channels, of which each can be what any of these can."""
        import numpy as np

        return Reach(np.full(channels, self.least.min()), np.full(channels, self.most.max()))

    def joined(self, other: Reach) -> Reach:
        """What is one or the other."""
        import numpy as np

        return Reach(np.minimum(self.least, other.least), np.maximum(self.most, other.most))


@dataclass(frozen=True, eq=False)
class Kept:
    """Which channels of a tensor are left, rising; `values`, int64[C], are what the others are."""

    channels: Array
    values: Array

    @property
    def dropped(self) -> Array:
        import numpy as np

        return np.setdiff1d(np.arange(len(self.values)), self.channels)


def channels_of(tensor: Tensor) -> int:
    """Elements along the last axis; 1 for a scalar."""
    return tensor.shape[-1] if tensor.shape else 1


def every_channel(view: LayerView) -> tuple[Array, ...]:
    """`LayerOp.carries` of an operator that makes each channel of the same ones; inputs of one are stretched."""
    import numpy as np

    channels = channels_of(view.outputs[0])
    own, none = np.arange(channels), np.full(channels, NEW)
    return tuple(own if channels_of(tensor) == channels else none for tensor in view.inputs)
