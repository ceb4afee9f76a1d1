"""How depthwise windows are walked over an image: which axes are rows and columns, which pixels are taken as one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stages.kernels.eight_bit import INT8_OFFSET

if TYPE_CHECKING:
    from stages.graph import LayerView

Pair = tuple[int, int]  # rows, columns
FULL = 16  # lanes of a vector
MOST_LANES = 128  # of neighbouring pixels that are taken as one: each has constants


@dataclass(frozen=True)
class Walk:
    """Windows on an image of `channels` bytes a pixel; `before` is the padding above and on the left.

    `repeat` neighbouring outputs are taken as one with as many times the channels, where the stride is one column.
    """

    size: Pair
    out: Pair
    kernel: Pair
    stride: Pair
    dilation: Pair
    before: Pair
    channels: int
    repeat: int = 1

    @property
    def lanes(self) -> int:
        """Channels of what is taken as one output."""
        return self.channels * self.repeat

    @property
    def columns(self) -> int:
        """How many of those a row has."""
        return self.out[1] // self.repeat

    @property
    def span(self) -> Pair:
        """Rows and columns of the image under a window."""
        rows, columns = ((self.kernel[i] - 1) * self.dilation[i] + 1 for i in range(2))
        return rows, columns

    @property
    def needed(self) -> Pair:
        """Of the padded image under all windows."""
        rows, columns = ((self.out[i] - 1) * self.stride[i] + self.span[i] for i in range(2))
        return rows, columns

    @property
    def is_inside(self) -> bool:
        """Whether no window leaves the image."""
        return self.before == (0, 0) and all(self.needed[i] <= self.size[i] for i in range(2))

    def offsets(self, line: int, pixel: int) -> list[int]:
        """Bytes from the first tap to each, by (row, column), where rows are `line` and columns `pixel` bytes apart."""
        rows, columns = (range(self.kernel[i]) for i in range(2))
        return [y * self.dilation[0] * line + x * self.dilation[1] * pixel for y in rows for x in columns]


def plain_walk(view: LayerView) -> Walk:
    """An image of one column lies on its side; an int8 image whose windows are its pixels is one row."""
    op, size, out = view.op, view.inputs[0].shape[1:3], view.outputs[0].shape[1:3]
    pairs = [size, out, op.kernel, op.stride, op.dilation, op.padding[:2]]
    rows, columns = ([int(pair[i]) for pair in pairs] for i in range(2))
    if columns[:3] == [1, 1, 1] and columns[5] == 0:
        rows, columns = columns, rows
    made = Walk(*zip(rows, columns, strict=True), int(op.in_channels))  # type: ignore[arg-type]
    are_pixels = (made.kernel, made.stride, made.before, made.out) == ((1, 1), (1, 1), (0, 0), made.size)
    if not are_pixels or flip(view):
        return made
    row = (1, made.size[0] * made.size[1])
    return replace(made, size=row, out=row)


def walks(view: LayerView) -> list[Walk]:
    """The ways to walk: one output at a time, and several where they are divided evenly."""
    plain = plain_walk(view)
    most = MOST_LANES // plain.channels if plain.stride[1] == 1 and plain.channels % FULL else 1
    return [replace(plain, repeat=n) for n in range(1, max(most, 1) + 1) if plain.out[1] % n == 0]


def flip(view: LayerView) -> int:
    """What makes the activations int8 by an exclusive or."""
    return INT8_OFFSET[view.inputs[0].dtype]
