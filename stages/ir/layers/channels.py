"""Static facts about a tensor's channels, the indices along its last axis.

Layers provide them with `LayerOp.value_range`, `LayerOp.carries`, `LayerOp.alike` and `LayerOp.narrowed`.
`stages.lower.simplify` uses them to remove channels that are constant or equal to others.
"""

from __future__ import annotations

from dataclasses import dataclass

from stages.ir.arrays import Array
from stages.ir.layers.tensor import Tensor
from stages.support.lazy import np

NEW = -1
"""In `LayerOp.carries`: the output's channel does not come from this input."""


@dataclass(frozen=True, eq=False)
class ValueRange:
    """Bounds of each channel's values, `least` and `most`, int64[C], inclusive.

    They need not be tight.
    """

    least: Array
    most: Array

    @property
    def is_constant(self) -> Array:
        """Which channels can have one value only, bool[C]."""
        constant: Array = self.least == self.most
        return constant

    @classmethod
    def of_type(cls, tensor: Tensor) -> ValueRange:
        """All values of the tensor's integer type."""
        limits, channels = np.iinfo(tensor.dtype), channels_of(tensor)
        return cls(np.full(channels, limits.min, np.int64), np.full(channels, limits.max, np.int64))

    @classmethod
    def of_values(cls, values: Array) -> ValueRange:
        """Range of an array in logical order."""
        rows = values.reshape(-1, values.shape[-1] if values.ndim else 1).astype(np.int64)
        return cls(rows.min(axis=0), rows.max(axis=0))

    def of(self, channels: Array) -> ValueRange:
        """Range of some channels, in that order."""
        return ValueRange(self.least[channels], self.most[channels])

    def spread(self, channels: int) -> ValueRange:
        """Range of `channels` channels, each of which may have the value of any of these."""
        return ValueRange(np.full(channels, self.least.min()), np.full(channels, self.most.max()))

    def joined(self, other: ValueRange) -> ValueRange:
        """Union with another range."""
        return ValueRange(np.minimum(self.least, other.least), np.maximum(self.most, other.most))


@dataclass(frozen=True, eq=False)
class Kept:
    """The remaining channels of a tensor, in rising order.

    channels  int64, the remaining channels
    equal     int64[C], for a removed channel the remaining one with equal values; else the channel itself
    values    int64[C], the value of a removed channel that has no equal one
    """

    channels: Array
    values: Array
    equal: Array

    @property
    def dropped(self) -> Array:
        """Removed channels that are constant, or have no weight."""
        gone = self._gone
        return gone[self.equal[gone] == gone]

    @property
    def repeated(self) -> Array:
        """Removed channels that equal a remaining one."""
        gone = self._gone
        return gone[self.equal[gone] != gone]

    @property
    def _gone(self) -> Array:
        return np.setdiff1d(np.arange(len(self.values)), self.channels)


def channels_of(tensor: Tensor) -> int:
    """Elements along the last axis; 1 for a scalar."""
    return tensor.shape[-1] if tensor.shape else 1


def labels(*keys: Array) -> Array:
    """Label of each channel, int64[C]: equal where all keys, (C, ...), are equal."""
    rows = np.concatenate([key.reshape(len(key), -1).astype(np.int64) for key in keys], axis=1)
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows])


def summed(values: Array, channels: Array) -> Array:
    """Add up values (..., C) of channels with the same label, int64[C], in a fixed order."""
    count = int(channels.max(initial=-1)) + 1
    if count == len(channels):
        return values
    totals = np.zeros((*values.shape[:-1], count), values.dtype)
    for channel, label in enumerate(channels.tolist()):
        totals[..., label] += values[..., channel]
    return totals
