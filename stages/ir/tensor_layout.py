"""Tensor layouts: order of axes, blocks, and bits per element.

A layout is written as its axes from the outermost to the innermost, blocks with their sizes, and the bits of an element
if they differ from its type:

    NHWC         the rows of pixels of a TFLite image
    NCHW         planes
    NCHW16c      planes of pixels of 16 channels each
    NHWC4c       as NHWC, each pixel filled up to a multiple of 4 channels
    OHWI4i:4     convolution weights in 4 bits, two to a byte

A capital letter is the rest of an axis outside of its blocks, which are small letters after it. An axis is padded to a
multiple of its blocks; the content of the padding is undefined. '' is the order of the logical axes, for tensors of any
rank.

Logical axes are the imported model's. Their letters follow from the rank (`AXES`) or are passed as `axes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

#: The letters of the logical axes of a tensor, by its rank.
AXES: Mapping[int, str] = {1: "C", 2: "NC", 3: "NWC", 4: "NHWC", 5: "NDHWC"}
NARROW = (1, 2, 4)  # bits of elements that share a byte

UNPACK_INSTRUCTIONS = 3.5
"""Instructions to unpack one weight, estimated."""

_PARTS = re.compile(r"(?:[A-Z]|[1-9][0-9]*[a-z])+")
_PART = re.compile(r"([A-Z])|([1-9][0-9]*)([a-z])")


class LayoutAxis(NamedTuple):
    """A part of a layout: axis (capital letter) and block size, 0 for the rest of the axis."""

    axis: str
    size: int


class Digit(NamedTuple):
    """A part for a given shape: index along `axis` / `step` modulo `extent`, with its stride."""

    axis: int
    step: int
    extent: int
    stride: int


class Layout(str):
    """The text of a layout, with its parts. Raises ValueError for an invalid text.

    parts  from the outermost to the innermost
    bits   bits of an element; 0: those of the tensor's type
    """

    __slots__ = ("bits", "parts")
    parts: tuple[LayoutAxis, ...]
    bits: int

    def __new__(cls, text: str = "") -> Layout:
        layout = super().__new__(cls, text)
        layout.parts, layout.bits = _parsed(str(text))
        return layout

    @property
    def axes(self) -> str:
        """The layout's capital letters: the same for NCHW16c and NCHW."""
        return "".join(part.axis for part in self.parts if not part.size)

    @property
    def is_blocked(self) -> bool:
        """Whether an axis has blocks, so that steps along it have different strides."""
        return any(part.size for part in self.parts)

    def physical_shape(self, shape: Sequence[int], axes: str = "") -> tuple[int, ...]:
        """Return the extents of the parts for a tensor of logical `shape`.

        `axes` names its logical axes. Raises ValueError if the layout has other axes.
        """
        return tuple(digit.extent for digit in self.digits(shape, axes))

    def elements(self, shape: Sequence[int], axes: str = "") -> int:
        """Return the number of elements in memory, with block padding."""
        return prod(self.physical_shape(shape, axes))

    def bytes(self, shape: Sequence[int], bits: int = 8, axes: str = "") -> int:
        """Return the bytes of a tensor with `bits` per element, unless the layout has bits."""
        return -(-self.elements(shape, axes) * (self.bits or bits) // 8)

    def offset(self, index: Sequence[int], shape: Sequence[int], axes: str = "") -> int:
        """Return the offset of the element at a logical index, in elements."""
        return sum(d.stride * (index[d.axis] // d.step % d.extent) for d in self.digits(shape, axes))

    def digits(self, shape: Sequence[int], axes: str = "") -> tuple[Digit, ...]:
        """Return the parts for a tensor of logical `shape`, with their strides."""
        return _digits(self, tuple(shape), axes)

    def lies_as(self, other: Layout, shape: Sequence[int], axes: str = "") -> bool:
        """Whether a tensor of this shape has the same bytes in both layouts.

        True for NHWC and NCHW with one channel or one pixel, and for NHWC and NCHW16c with exactly one full block of
        channels.
        """
        return self.bits == other.bits and _canonical(self, shape, axes) == _canonical(other, shape, axes)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema())

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^({_PARTS.pattern}(:[124])?)?$"}


@lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[tuple[LayoutAxis, ...], int]:
    order, colon, bits = text.partition(":")
    if not text:
        return (), 0
    if not _PARTS.fullmatch(order):
        raise ValueError(f"{text!r} is not a layout: axes are capitals, blocks size and small letter, as in NCHW16c")
    if colon and bits not in map(str, NARROW):
        raise ValueError(f"{text!r} is not a layout: the bits per element after the colon must be 1, 2 or 4")
    parts = tuple(
        LayoutAxis(axis, 0) if axis else LayoutAxis(block.upper(), int(size))
        for axis, size, block in _PART.findall(order)
    )
    axes = [part.axis for part in parts if not part.size]
    if len(set(axes)) < len(axes):
        raise ValueError(f"{text!r} is not a layout: it has an axis twice")
    for number, (axis, size) in enumerate(parts):
        if size and LayoutAxis(axis, 0) not in parts[:number]:
            raise ValueError(f"{text!r} is not a layout: block {size}{axis.lower()} needs {axis} before it")
        if size == 1:
            raise ValueError(f"{text!r} is not a layout: a block of one element")
    return parts, int(bits or 0)


@lru_cache(maxsize=16384)
def _digits(layout: Layout, shape: tuple[int, ...], axes: str) -> tuple[Digit, ...]:
    axes = axes or AXES.get(len(shape), "")
    parts = layout.parts or tuple(LayoutAxis(axis, 0) for axis in axes)
    if not layout.parts:  # logical order; there may be more axes than letters
        strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
        return tuple(Digit(axis, 1, size, strides[axis]) for axis, size in enumerate(shape))
    if sorted(layout.axes) != sorted(axes) or len(axes) != len(shape):
        raise ValueError(f"layout {layout} has other axes than {axes or 'a tensor of this rank'}")
    digits: list[Digit] = []
    steps = dict.fromkeys(axes, 1)
    stride = 1
    for axis, size in reversed(parts):
        number, step = axes.index(axis), steps[axis]
        extent = size or -(-shape[number] // step)
        digits.append(Digit(number, step, extent, stride))
        steps[axis] *= size or 1
        stride *= extent
    return tuple(reversed(digits))


def _canonical(layout: Layout, shape: Sequence[int], axes: str) -> tuple[frozenset[Digit], int]:
    """Return the digits with several values, runs merged, and the elements in memory."""
    digits = layout.digits(shape, axes)
    merged: set[Digit] = set()
    for axis, size in enumerate(shape):
        runs = [
            digit._replace(extent=min(digit.extent, -(-size // digit.step))) for digit in digits if digit.axis == axis
        ]
        runs = sorted((digit for digit in runs if digit.extent > 1), key=lambda digit: -digit.step)
        while (pair := next((p for p in pairwise(runs) if p[0].stride == p[1].stride * p[1].extent), None)) is not None:
            outer, inner = pair
            extent = min(outer.extent * inner.extent, -(-size // inner.step))
            runs[runs.index(outer) : runs.index(inner) + 1] = [inner._replace(extent=extent)]
        merged.update(runs)
    return frozenset(merged), prod(digit.extent for digit in digits)


#: The order of the logical axes, for any rank.
LOGICAL = Layout("")
NHWC = Layout("NHWC")
NCHW = Layout("NCHW")
