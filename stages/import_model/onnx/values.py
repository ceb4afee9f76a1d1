"""What a name of the ONNX graph stands for while it is translated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.ir.models.tflite_writer import Tensor

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Order = tuple[int, ...]


def plain_order(rank: int) -> Order:
    """Axes as ONNX has them."""
    return tuple(range(rank))


def image_order(rank: int) -> Order:
    """(N, C, H, W) as NHWC; (N, C) and others as they are."""
    return (0, 2, 3, 1) if rank == 4 else plain_order(rank)


@dataclass(frozen=True)
class Held:
    """A tensor that is computed.

    tensor  as it lies in the TFLite file, an array of shape `base` whose axis i is axis order[i] of `base`
    base    the shape, in ONNX' order, of what was written there
    shape   the shape that it has in ONNX now: another one after a Reshape that nothing was done for yet
    """

    tensor: Tensor
    base: Shape
    shape: Shape
    order: Order

    @classmethod
    def of(cls, tensor: Tensor, order: Order) -> Held:
        """A tensor whose axes are those of ONNX in `order`."""
        shape = [0] * len(order)
        for place, axis in enumerate(order):
            shape[axis] = tensor.shape[place]
        return cls(tensor, tuple(shape), tuple(shape), order)

    @property
    def reshaped(self) -> bool:
        return self.base != self.shape

    @property
    def is_plain(self) -> bool:
        """Whether its elements lie in ONNX' order: axes of size 1 may be anywhere."""
        moved = [axis for axis in self.order if self.base[axis] != 1]
        return moved == sorted(moved)

    def transposed(self, moved: Sequence[int]) -> Held:
        """With its axes in this order: nothing is moved, they have other numbers. It is not `reshaped`."""
        shape = permuted(self.shape, tuple(moved))
        return Held(self.tensor, shape, shape, tuple(moved.index(axis) for axis in self.order))

    def places(self) -> Array:
        """For each element in ONNX' order of `shape`, its place in the tensor, as int64 of that shape."""
        count = int(np.prod(self.base, dtype=np.int64))
        lie = np.arange(count).reshape([self.base[axis] for axis in self.order])
        return lie.transpose(np.argsort(self.order)).reshape(self.shape)


@dataclass(frozen=True)
class Real:
    """The real numbers that the integers of `held`, whose tensor has a scale, stand for: a DequantizeLinear."""

    held: Held


@dataclass(frozen=True)
class Stored:
    """A constant. Integers with a scale (one, or one for each index along `axis`) stand for real numbers."""

    values: Array
    scale: Array | None = None
    zero_point: Array | None = None
    axis: int = 0

    @property
    def real(self) -> Array:
        """The numbers that it stands for; dequantized in float32, as ONNX has it."""
        if self.scale is None:
            return self.values
        scale, zero_point = (along(part, self.axis, self.values.ndim) for part in (self.scale, self.zero_point))
        return (self.values.astype(np.int32) - zero_point.astype(np.int32)).astype(np.float32) * scale

    @property
    def exchanged(self) -> Stored:
        """A matrix with its axes exchanged."""
        return replace(self, values=self.values.T, axis=1 - self.axis % 2)


Value = Held | Real | Stored


def along(values: Array | None, axis: int, rank: int) -> Array:
    """One value, or one for each index along `axis`, so that it broadcasts over `rank` axes."""
    array = np.asarray(values)
    return array.reshape([-1 if place == axis % max(rank, 1) else 1 for place in range(rank)] if array.size > 1 else [])


def permuted(shape: Sequence[int], order: Order) -> Shape:
    """Sizes in ONNX' order as they lie."""
    return tuple(shape[axis] for axis in order)
