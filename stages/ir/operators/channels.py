"""Static facts about a tensor's channels, the indices along its last axis.

Layers provide them with `LayerOp.reach`, `LayerOp.carries`, `LayerOp.alike` and `LayerOp.narrowed`.
`stages.lower.simplify` uses them to remove channels that are constant or equal to others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    from stages.ir.graph import LayerView, Tensor

    Array = npt.NDArray[Any]

NEW = -1
"""In `LayerOp.carries`: the output's channel is not one of this input's."""


@dataclass(frozen=True, eq=False)
class ValueRange:
    """Bounds on the values of each channel: `least` and `most`, int64[C], inclusive. They need not be tight."""

    least: Array
    most: Array

    @property
    def is_constant(self) -> Array:
        """Which channels can be one number only, bool[C]."""
        constant: Array = self.least == self.most
        return constant

    @classmethod
    def of_type(cls, tensor: Tensor) -> ValueRange:
        """All values of an integer type."""
        import numpy as np

        limits, channels = np.iinfo(tensor.dtype), channels_of(tensor)
        return cls(np.full(channels, limits.min, np.int64), np.full(channels, limits.max, np.int64))

    @classmethod
    def of_values(cls, values: Array) -> ValueRange:
        """What an array in logical order holds."""
        import numpy as np

        rows = values.reshape(-1, values.shape[-1] if values.ndim else 1).astype(np.int64)
        return cls(rows.min(axis=0), rows.max(axis=0))

    def of(self, channels: Array) -> ValueRange:
        """The bounds of some channels, in that order."""
        return ValueRange(self.least[channels], self.most[channels])

    def spread(self, channels: int) -> ValueRange:
        """So many channels, of which each can be what any of these can."""
        import numpy as np

        return ValueRange(np.full(channels, self.least.min()), np.full(channels, self.most.max()))

    def joined(self, other: ValueRange) -> ValueRange:
        """What is one or the other."""
        import numpy as np

        return ValueRange(np.minimum(self.least, other.least), np.maximum(self.most, other.most))


@dataclass(frozen=True, eq=False)
class Kept:
    """Which channels of a tensor are left, rising.

    Of the others, `equal`, int64[C], is a channel that is left and has the same values; where it is the channel itself,
    `values`, int64[C], are what all its elements are.
    """

    channels: Array
    values: Array
    equal: Array

    @property
    def dropped(self) -> Array:
        """The channels that are constant, or of no weight."""
        gone = self._gone
        return gone[self.equal[gone] == gone]

    @property
    def repeated(self) -> Array:
        """The channels that are equal to one that is left."""
        gone = self._gone
        return gone[self.equal[gone] != gone]

    @property
    def _gone(self) -> Array:
        import numpy as np

        return np.setdiff1d(np.arange(len(self.values)), self.channels)


def channels_of(tensor: Tensor) -> int:
    """Elements along the last axis; 1 for a scalar."""
    return tensor.shape[-1] if tensor.shape else 1


def labels(*keys: Array) -> Array:
    """A number for each channel, int64[C]: equal where all the keys, each (C, ...), are."""
    import numpy as np

    rows = np.concatenate([key.reshape(len(key), -1).astype(np.int64) for key in keys], axis=1)
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows])


def summed(values: Array, channels: Array) -> Array:
    """Values (..., C) of channels with these labels, int64[C], added up for each label, in one order for all rows."""
    import numpy as np

    count = int(channels.max(initial=-1)) + 1
    if count == len(channels):
        return values
    found = np.zeros((*values.shape[:-1], count), values.dtype)
    for channel, label in enumerate(channels.tolist()):
        found[..., label] += values[..., channel]
    return found


def every_channel(view: LayerView) -> tuple[Array, ...]:
    """`LayerOp.carries` of an operator that makes each channel of the same ones; inputs of one are stretched."""
    import numpy as np

    channels = channels_of(view.outputs[0])
    own, none = np.arange(channels), np.full(channels, NEW)
    return tuple(own if channels_of(tensor) == channels else none for tensor in view.inputs)
