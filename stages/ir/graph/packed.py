"""Arrays in logical order, and as they lie in memory in some layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stages.ir.tensor_layout import Layout


def pack(values: NDArray[np.generic], layout: Layout, axes: str = "") -> NDArray[np.generic]:
    """`values`, in logical order, as they lie in memory.

    The result has the layout's physical shape and the type of the values, zeros where blocks are filled up. Where the
    layout says how many bits an element has it is uint8[bytes], the first element in the lowest bits of a byte; raises
    ValueError for a value that they do not hold (int8: from -2^(bits-1), uint8: from 0).
    """
    physical = np.zeros(layout.elements(values.shape, axes), values.dtype)
    physical[_places(values.shape, layout, axes)] = values
    if not layout.bits:
        return physical.reshape(layout.physical_shape(values.shape, axes))
    return narrowed(physical, layout.bits)


def unpack(
    memory: NDArray[np.generic], layout: Layout, shape: Sequence[int], axes: str = "", dtype: str = "int8"
) -> NDArray[np.generic]:
    """What `pack` made `memory` of: an array of logical `shape`; of the type `dtype` where elements are narrow."""
    flat = memory.reshape(-1)
    if layout.bits:
        flat = widened(flat.view(np.uint8), layout.bits, dtype)
    return flat[_places(shape, layout, axes)]


def limits(bits: int, *, signed: bool = True) -> tuple[int, int]:
    """The least and the largest integer of so many bits."""
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def bits_of(values: NDArray[np.generic]) -> int:
    """The bits that hold every one of these integers, at least 1: of signed types in two's complement."""
    if not values.size:
        return 1
    ends = int(values.min()), int(values.max())
    magnitude = max((end if end >= 0 else ~end).bit_length() for end in ends)
    return magnitude + 1 if np.issubdtype(values.dtype, np.signedinteger) else max(magnitude, 1)


def as_in_file(values: NDArray[np.generic], added: int) -> NDArray[np.generic]:
    """Values of a tensor as the imported file has them, whose integers are smaller by `Tensor.added`."""
    if not added:
        return values
    return np.asarray(values.astype(np.int16) - added, np.int8 if added > 0 else np.uint8)


def _places(shape: Sequence[int], layout: Layout, axes: str) -> NDArray[np.intp]:
    """The offset of each element."""
    places = np.zeros((), np.intp)
    for digit in layout.digits(shape, axes):
        along = np.arange(shape[digit.axis]) // digit.step % digit.extent * digit.stride
        places = places + along.reshape(-1, *(1,) * (len(shape) - 1 - digit.axis))
    return np.broadcast_to(places, tuple(shape))


def narrowed(values: NDArray[np.generic], bits: int) -> NDArray[np.uint8]:
    """Integers one after the other in `bits` each (1, 2 or 4), the first in the lowest of a byte, as TFLite has them.

    Raises ValueError for a value that they do not hold (signed types: from -2^(bits-1), others: from 0).
    """
    values = values.reshape(-1)
    lowest, highest = limits(bits, signed=np.issubdtype(values.dtype, np.signedinteger))
    wide = values.astype(np.int64)
    if wide.size and (wide.min() < lowest or wide.max() > highest):
        raise ValueError(f"{bits} bits hold {lowest} to {highest}, values are {wide.min()} to {wide.max()}")
    each = 8 // bits
    filled = np.zeros(-(-wide.size // each) * each, np.int64)
    filled[: wide.size] = wide & ((1 << bits) - 1)
    shifts = np.arange(each) * bits
    return np.asarray((filled.reshape(-1, each) << shifts).sum(1), np.uint8)


def widened(memory: NDArray[np.uint8], bits: int, dtype: str = "int8") -> NDArray[np.generic]:
    """What `narrowed` made `memory` of, with the elements that fill up the last byte."""
    values = (memory[:, None] >> np.arange(0, 8, bits)) & ((1 << bits) - 1)
    wide = values.reshape(-1).astype(np.int64)
    if np.issubdtype(np.dtype(dtype), np.signedinteger):
        wide -= (wide >> (bits - 1)) << bits
    return np.asarray(wide, dtype)
