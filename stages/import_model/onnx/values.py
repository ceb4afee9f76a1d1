"""Values that ONNX names have during translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stages.ir.arrays import Array
from stages.ir.models.tflite_writer import Tensor

Shape = tuple[int, ...]
Order = tuple[int, ...]


def plain_order(rank: int) -> Order:
    """Return ONNX' axis order for a tensor with `rank` axes."""
    return tuple(range(rank))


def image_order(rank: int) -> Order:
    """Return the order of (N, C, H, W) as NHWC; ONNX' order for other ranks."""
    return (0, 2, 3, 1) if rank == 4 else plain_order(rank)


@dataclass(frozen=True)
class TensorView:
    """A computed tensor with an axis order and a pending reshape.

    tensor  the TFLite tensor: an array of shape `base` whose axis i is axis order[i] of `base`
    base    the shape, in ONNX' order, with which the tensor was written
    shape   the current ONNX shape; it differs from `base` after a Reshape that is still pending
    """

    tensor: Tensor
    base: Shape
    shape: Shape
    order: Order

    @classmethod
    def of(cls, tensor: Tensor, order: Order) -> TensorView:
        """Return a view of a tensor whose axes are ONNX' axes in `order`."""
        shape = [0] * len(order)
        for place, axis in enumerate(order):
            shape[axis] = tensor.shape[place]
        return cls(tensor, tuple(shape), tuple(shape), order)

    @property
    def reshaped(self) -> bool:
        """Whether a reshape is pending."""
        return self.base != self.shape

    @property
    def is_plain(self) -> bool:
        """Whether the elements are in ONNX' order; axes of size 1 may be anywhere."""
        moved = [axis for axis in self.order if self.base[axis] != 1]
        return moved == sorted(moved)

    def transposed(self, moved: Sequence[int]) -> TensorView:
        """Return the view with permuted axes; no data moves. It must not be `reshaped`."""
        shape = permuted(self.shape, tuple(moved))
        return TensorView(self.tensor, shape, shape, tuple(moved.index(axis) for axis in self.order))

    def element_offsets(self) -> Array:
        """Return for each element of `shape` its offset in the tensor, as int64 of that shape."""
        count = int(np.prod(self.base, dtype=np.int64))
        lie = np.arange(count).reshape([self.base[axis] for axis in self.order])
        return lie.transpose(np.argsort(self.order)).reshape(self.shape)


@dataclass(frozen=True)
class Dequantized:
    """Real numbers of a DequantizeLinear: `integers` is a tensor with a scale."""

    integers: TensorView


@dataclass(frozen=True)
class Constant:
    """A constant. Integers with a scale (or one per index of `axis`) mean real numbers."""

    values: Array
    scale: Array | None = None
    zero_point: Array | None = None
    axis: int = 0

    @property
    def real_values(self) -> Array:
        """The real numbers of the value; dequantized in float32, as in ONNX."""
        if self.scale is None:
            return self.values
        scale, zero_point = (along(part, self.axis, self.values.ndim) for part in (self.scale, self.zero_point))
        return (self.values.astype(np.int32) - zero_point.astype(np.int32)).astype(np.float32) * scale

    @property
    def matrix_transpose(self) -> Constant:
        """The constant, a matrix, with exchanged axes."""
        return replace(self, values=self.values.T, axis=1 - self.axis % 2)


Value = TensorView | Dequantized | Constant


def along(values: Array | None, axis: int, rank: int) -> Array:
    """Return one value, or one per index of `axis`, in a shape that broadcasts to `rank` axes."""
    array = np.asarray(values)
    return array.reshape([-1 if place == axis % max(rank, 1) else 1 for place in range(rank)] if array.size > 1 else [])


def permuted(shape: Sequence[int], order: Order) -> Shape:
    """Return sizes in the stored order."""
    return tuple(shape[axis] for axis in order)
