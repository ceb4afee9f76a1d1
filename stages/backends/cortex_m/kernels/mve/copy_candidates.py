"""Row candidates of a copy between views: dense rows, every n-th item, offset table.

copy    consecutive items to consecutive items
pick    y[i] = x[i * stride]     a gather load for eight items of one or two bytes, or for four of four
put     y[i * stride] = x[i]     a scatter store, likewise
gather  y[i] = x[offsets[i]]     16 consecutive output bytes at a time, if their inputs are within 256 bytes

A transpose can run along either of its axes, so `pick` and `put` compete; `gather` is for small blocks.
"""

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
class CopyCandidate:
    """Loops over `outer` and rows along `row`; a row covers `inner`.

    Strides are (output, input), in elements.

    item   bytes that `pick` and `put` move at once; the last axis of `inner` holds the elements of an item
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
        """Return the input offsets of a row's elements, in output order."""
        steps = [[number * axis.strides[1] for number in range(axis.extent)] for axis in self.inner]
        return [sum(at) for at in product(*steps)]

    def cost(self, element: int) -> float:
        """Return the instructions for elements of `element` bytes, from counts."""
        size = self.count * element
        if self.kind in ("copy", "gather"):
            vector_cost = 3 if self.kind == "copy" else 4
            row = 6.0 if size <= 16 else 8.0 + vector_cost * -(-size // 16)
        else:
            row = 8.0 + 4 * -(-size // self.item // _LANES[self.item])
        return prod(axis.extent for axis in self.outer) * (self.row.extent * row + 25)


def candidates(copy: Copy, element: int) -> Iterator[CopyCandidate]:
    """Return the candidates of a copy.

    Elements of eight bytes that are not neighbours have none.
    """
    *others, run = copy.axes
    if run.extent == 1 or run.strides == (1, 1):
        yield _candidate("copy", others, (run,))
    for item, inner, rest in _items(copy, element):
        along = next((axis for axis in rest if _steps(axis, inner, 0, item, element)), None)
        if along is not None:
            yield _candidate("pick", [axis for axis in rest if axis is not along], (along, *inner), item)
        along = next((axis for axis in rest if _steps(axis, inner, 1, item, element)), None)
        if along is not None:
            yield _candidate("put", [axis for axis in rest if axis is not along], (along, *inner), item)
    if element == 1 and (block := _block(copy.axes)) is not None:
        yield _candidate("gather", *block)


def best(copy: Copy, element: int) -> CopyCandidate | None:
    """Return the candidate with the fewest instructions, None if there is none."""
    return min(candidates(copy, element), key=lambda candidate: candidate.cost(element), default=None)


def _candidate(
    kind: Literal["copy", "pick", "put", "gather"], rest: Sequence[Axis], inner: Sequence[Axis], item: int = 1
) -> CopyCandidate:
    """Return the candidate with rows along the longest other axis, for the fewest calls."""
    row = max(rest, key=lambda axis: axis.extent, default=_ONE)
    return CopyCandidate(kind, tuple(axis for axis in rest if axis is not row), row, tuple(inner), item)


def _items(copy: Copy, element: int) -> Iterator[tuple[int, tuple[Axis, ...], Sequence[Axis]]]:
    """Return the bytes of an item, the axis of its elements if there are several, other axes."""
    *others, run = copy.axes
    if element in _LANES:
        yield element, (), copy.axes
    size = run.extent * element
    places = [copy.target_offset, copy.source_offset, *(stride for axis in others for stride in axis.strides)]
    if run.strides == (1, 1) and run.extent > 1 and size in _LANES and not any(place % run.extent for place in places):
        yield size, (run,), others


def _steps(axis: Axis, inner: Sequence[Axis], dense: int, item: int, element: int) -> bool:
    """Return whether items are neighbours in buffer `dense` and near enough in the other."""
    step = inner[0].extent if inner else 1
    apart = axis.strides[1 - dense] * element
    return axis.strides[dense] == step and apart > 0 and (item == 4 or apart <= MOST_STRIDE)


def _block(axes: Sequence[Axis]) -> tuple[list[Axis], list[Axis]] | None:
    """Return the axes around a block, and the axes inside it.

    A block is as much as is dense in the output and within `_SPAN` bytes of the input; it may use part of the last
    axis. None if the block has one axis only, as `pick` needs no table.
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
