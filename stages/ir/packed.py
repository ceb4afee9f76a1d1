"""Arrays in logical order and in memory order."""

from __future__ import annotations

from collections.abc import Sequence

from stages.ir.tensor_layout import Layout
from stages.support.lazy import np, npt


def pack(values: npt.NDArray[np.generic], layout: Layout, axes: str = "") -> npt.NDArray[np.generic]:
    """Return `values`, which are in logical order, in memory order.

    The result has the layout's physical shape and the type of the values, with zeros as block padding. For a layout
    with bits it is uint8[bytes], first element in the lowest bits; raises ValueError for values out of range (int8:
    from -2^(bits-1), uint8: from 0).
    """
    physical = np.zeros(layout.elements(values.shape, axes), values.dtype)
    physical[_places(values.shape, layout, axes)] = values
    if not layout.bits:
        return physical.reshape(layout.physical_shape(values.shape, axes))
    return narrowed(physical, layout.bits)


def unpack(
    memory: npt.NDArray[np.generic], layout: Layout, shape: Sequence[int], axes: str = "", dtype: str = "int8"
) -> npt.NDArray[np.generic]:
    """Return the array of logical `shape` from `memory`, the inverse of `pack`.

    dtype  type of the result if the layout has bits
    """
    flat = memory.reshape(-1)
    if layout.bits:
        flat = widened(flat.view(np.uint8), layout.bits, dtype)
    return flat[_places(shape, layout, axes)]


def limits(bits: int, *, signed: bool = True) -> tuple[int, int]:
    """Return the least and the largest integer of `bits` bits."""
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def bits_of(values: npt.NDArray[np.generic]) -> int:
    """Return the bits that hold all of these integers, at least 1; signed: two's complement."""
    if not values.size:
        return 1
    ends = int(values.min()), int(values.max())
    magnitude = max((end if end >= 0 else ~end).bit_length() for end in ends)
    return magnitude + 1 if np.issubdtype(values.dtype, np.signedinteger) else max(magnitude, 1)


def as_in_file(values: npt.NDArray[np.generic], added: int) -> npt.NDArray[np.generic]:
    """Return values of a tensor as the imported file has them.

    added  `Tensor.added`: how much larger the values are than in the file
    """
    if not added:
        return values
    return np.asarray(values.astype(np.int16) - added, np.int8 if added > 0 else np.uint8)


def _places(shape: Sequence[int], layout: Layout, axes: str) -> npt.NDArray[np.intp]:
    """Return the memory offset of each element."""
    places = np.zeros((), np.intp)
    for digit in layout.digits(shape, axes):
        along = np.arange(shape[digit.axis]) // digit.step % digit.extent * digit.stride
        places = places + along.reshape(-1, *(1,) * (len(shape) - 1 - digit.axis))
    return np.broadcast_to(places, tuple(shape))


def narrowed(values: npt.NDArray[np.generic], bits: int) -> npt.NDArray[np.uint8]:
    """Pack integers of `bits` each (1, 2 or 4) into bytes, first in the lowest bits.

    TFLite stores them like this. Raises ValueError for values out of range (signed types: from -2^(bits-1), others:
    from 0).
    """
    values = values.reshape(-1)
    lowest, highest = limits(bits, signed=np.issubdtype(values.dtype, np.signedinteger))
    wide = values.astype(np.int64)
    if wide.size and (wide.min() < lowest or wide.max() > highest):
        raise ValueError(f"{bits} bits hold {lowest} to {highest}, values are {wide.min()} to {wide.max()}")
    per_byte = 8 // bits
    filled = np.zeros(-(-wide.size // per_byte) * per_byte, np.int64)
    filled[: wide.size] = wide & ((1 << bits) - 1)
    shifts = np.arange(per_byte) * bits
    return np.asarray((filled.reshape(-1, per_byte) << shifts).sum(1), np.uint8)


def widened(memory: npt.NDArray[np.uint8], bits: int, dtype: str = "int8") -> npt.NDArray[np.generic]:
    """Unpack the bytes of `narrowed`, including the elements that pad the last byte."""
    values = (memory[:, None] >> np.arange(0, 8, bits)) & ((1 << bits) - 1)
    wide = values.reshape(-1).astype(np.int64)
    if np.issubdtype(np.dtype(dtype), np.signedinteger):
        wide -= (wide >> (bits - 1)) << bits
    return np.asarray(wide, dtype)
