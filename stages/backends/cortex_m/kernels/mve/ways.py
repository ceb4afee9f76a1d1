"""How a copy between strided views is made of rows: as neighbours, every n-th item, or by a table of offsets.

    copy    neighbours to neighbours
    pick    y[i] = x[i * stride]     a gathering load for eight items of one or two bytes, or for four of four
    put     y[i * stride] = x[i]     a scattering store, likewise
    gather  y[i] = x[offsets[i]]     16 bytes at a time, where what the output has together is in 256 bytes of the input

A transpose can be walked along either of its axes, so that `pick` and `put` compete; small blocks are for `gather`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Literal

from stages.backends.kernels.copies import Copy
from stages.backends.kernels.tir.strides import Axis

MOST_STRIDE = 8191  # of bytes between items of one or two bytes: offsets of eight have 16 bits
_SPAN = 256  # of bytes that offsets of one byte reach
_LANES = {1: 8, 2: 8, 4: 4}  # items of so many bytes in a vector
_ONE = Axis(1, (0, 0))


@dataclass(frozen=True)
class Way:
    """Loops over `outer` and rows along `row`; a row is all of `inner`. Strides are (output, input), in elements.

    item   bytes that `pick` and `put` move as one; the last of `inner` is its elements where there are several
    """

    kind: Literal["copy", "pick", "put", "gather"]
    outer: tuple[Axis, ...]
    row: Axis
    inner: tuple[Axis, ...]
    item: int = 1

    @property
    def count(self) -> int:
        """Elements of a row."""
        return prod(axis.extent for axis in self.inner)

    @property
    def offsets(self) -> list[int]:
        """Where the elements of a row are in the input, in the order of the output."""
        steps = [[number * axis.strides[1] for number in range(axis.extent)] for axis in self.inner]
        return [sum(at) for at in product(*steps)]

    def cost(self, element: int) -> float:
        """Instructions, as counted, for elements of so many bytes."""
        size = self.count * element
        if self.kind in ("copy", "gather"):
            each = 3 if self.kind == "copy" else 4
            row = 6.0 if size <= 16 else 8.0 + each * -(-size // 16)
        else:
            row = 8.0 + 4 * -(-size // self.item // _LANES[self.item])
        return prod(axis.extent for axis in self.outer) * (self.row.extent * row + 25)


def ways(copy: Copy, element: int) -> Iterator[Way]:
    """The ways of a copy of elements of so many bytes; none for elements of eight bytes that are no neighbours."""
    *others, run = copy.axes
    if run.extent == 1 or run.strides == (1, 1):
        yield _way("copy", others, (run,))
    for item, inner, rest in _items(copy, element):
        along = next((axis for axis in rest if _steps(axis, inner, 0, item, element)), None)
        if along is not None:
            yield _way("pick", [axis for axis in rest if axis is not along], (along, *inner), item)
        along = next((axis for axis in rest if _steps(axis, inner, 1, item, element)), None)
        if along is not None:
            yield _way("put", [axis for axis in rest if axis is not along], (along, *inner), item)
    if element == 1 and (block := _block(copy.axes)) is not None:
        yield _way("gather", *block)


def best(copy: Copy, element: int) -> Way | None:
    """The way of the fewest instructions."""
    return min(ways(copy, element), key=lambda way: way.cost(element), default=None)


def _way(
    kind: Literal["copy", "pick", "put", "gather"], rest: Sequence[Axis], inner: Sequence[Axis], item: int = 1
) -> Way:
    """Rows along the longest of the other axes, for the fewest calls."""
    row = max(rest, key=lambda axis: axis.extent, default=_ONE)
    return Way(kind, tuple(axis for axis in rest if axis is not row), row, tuple(inner), item)


def _items(copy: Copy, element: int) -> Iterator[tuple[int, tuple[Axis, ...], Sequence[Axis]]]:
    """Bytes of an item, the axis of its elements if there are several, and the other axes."""
    *others, run = copy.axes
    if element in _LANES:
        yield element, (), copy.axes
    size = run.extent * element
    places = [copy.target_offset, copy.source_offset, *(stride for axis in others for stride in axis.strides)]
    if run.strides == (1, 1) and run.extent > 1 and size in _LANES and not any(place % run.extent for place in places):
        yield size, (run,), others


def _steps(axis: Axis, inner: Sequence[Axis], dense: int, item: int, element: int) -> bool:
    """Whether items are neighbours along the axis in the buffer `dense`, and not too far apart in the other."""
    own = inner[0].extent if inner else 1
    apart = axis.strides[1 - dense] * element
    return axis.strides[dense] == own and apart > 0 and (item == 4 or apart <= MOST_STRIDE)


def _block(axes: Sequence[Axis]) -> tuple[list[Axis], list[Axis]] | None:
    """The axes around a block and those of it: as much as is dense in the output and within `_SPAN` bytes of the input.

    The last axis may be taken in part. None where that is no more than one axis: `pick` has no table.
    """
    rest, inner, size, reach = list(axes), list[Axis](), 1, 1
    while rest and rest[-1].strides[0] == size and rest[-1].strides[1] > 0:
        extent, (into, out_of) = rest[-1].extent, rest[-1].strides
        part = next(
            n for n in range(extent, 0, -1) if extent % n == 0 and (n == 1 or reach + (n - 1) * out_of <= _SPAN)
        )
        if part == 1:
            break
        inner.insert(0, Axis(part, (into, out_of)))
        rest.pop()
        size, reach = size * part, reach + (part - 1) * out_of
        if part < extent:
            rest.append(Axis(extent // part, (into * part, out_of * part)))
            break
    return (rest, inner) if len(inner) > 1 else None
