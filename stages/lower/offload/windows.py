"""Windows laid side by side by transfers: for engines that multiply rows of numbers, and know no windows.

Each pixel of a tile's output has the bytes of its window, row by row: those inside of the image are copied from it,
the others are copies of a byte, the input's zero point.

    image, window 2x3, steps of 2       side by side, one output pixel after the other
    a b c d e                           . a b | . f g     b c d | g h i     d e . | i j .
    f g h i j

There are several tiling_candidates, of which the cheapest is taken:

    apart    a row of windows is a transfer for each row of a window, with a run for each window; where there are more
             rows than columns, a column of them is. What is beyond the image is filled
    filled   everything is filled before, in one piece, so that only what lies in the image is copied
    wrapped  where a row of windows ends where the next one begins, as with steps of one, all windows are runs of one
             transfer. Those at the edges read on in the next row, and are filled afterwards
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.backends.accelerators.tiles import extent
from stages.lower.offload.program import Place, Transfer

if TYPE_CHECKING:
    from stages.backends.accelerators.tiles import Tile
    from stages.ir.graph import LayerView

PADDING = "padding"
_BLOCK = 256  # bytes of padding that a transfer has at once, or some more


def why_not_gathered(view: LayerView) -> str:
    """Why the windows of a convolution cannot be gathered so, '' if they can."""
    op, image = view.op, view.inputs[0]
    if op.op != "conv2d":
        return f"windows of {op.op} are of each channel by itself; they are gathered of all channels"
    if op.dilation != (1, 1):
        return f"its windows have taps {op.dilation[0]}x{op.dilation[1]} apart; windows are gathered whole"
    if op.groups != 1:
        return f"it has {op.groups} groups; windows are gathered of all channels"
    if not image.lies_as("NHWC"):
        return f"tensor {image.name} is {image.layout}; windows are gathered of NHWC"
    return ""


def window_bytes(view: LayerView) -> int:
    """Of one window: all taps and channels of an 8-bit image (`why_not_gathered`)."""
    height, width = view.op.kernel
    return int(height * width * view.op.in_channels)


def padding_block(view: LayerView) -> bytes:
    """What transfers copy where a window reaches beyond the image: rows of one, as many as are some hundred bytes."""
    return bytes([view.op.input_zero_point & 0xFF]) * _padding_bytes(view)


def _padding_bytes(view: LayerView) -> int:
    row: int = view.op.kernel[1] * view.op.in_channels
    return -(-_BLOCK // row) * row if any(view.op.padding) else row


def gather(view: LayerView, tile: Tile, to: str, cost: Callable[[Transfer], float]) -> tuple[Transfer, ...]:
    """Return the transfers that copy the windows of a tile's rows one after the other to the buffer `to`.

    `cost` is that of a transfer, without its `times`.
    """
    return min(gather_variants(view, tile, to), key=lambda candidate: sum(one.times * cost(one) for one in candidate))


def gather_variants(view: LayerView, tile: Tile, to: str) -> list[tuple[Transfer, ...]]:
    """All of them; `apart` first, which writes each byte once."""
    axis = _Columns.of(view)
    found = [tuple(_taps(view, tile, to, axis))]
    if any(one.source.role == f"constant:{PADDING}" for one in found[0]):
        inside = [one for one in found[0] if one.source.role != f"constant:{PADDING}"]
        total = len(tile.rows) * extent(view.outputs[0]).columns * axis.window
        found.append((*_fill_all(to, total, _padding_bytes(view)), *inside))
    if axis.wraps(view):
        found.append(tuple(_taps(view, tile, to, axis, wrapped=True)))
    return found


def _fill_all(to: str, total: int, block: int) -> Iterator[Transfer]:
    yield from _fill(to, 0, total // block, block, block)
    yield from _fill(to, total // block * block, 1, total % block, block)


def _taps(view: LayerView, tile: Tile, to: str, axis: _Columns, *, wrapped: bool = False) -> Iterator[Transfer]:
    op, image, out = view.op, extent(view.inputs[0]), extent(view.outputs[0])
    channels, window = image.channels, window_bytes(view)
    part = op.kernel[1] * channels
    for tap in range(op.kernel[0]):
        first = tile.rows.first * op.stride[0] - op.padding[0] + tap  # the image's row for the tile's first one
        count = len(tile.rows)
        begin = min(max(-(first // op.stride[0]), 0), count)
        end = max(min(-(-(image.rows - first) // op.stride[0]), count), begin)
        line = out.columns * window
        for rows, after in ((begin, 0), (count - end, end)):
            yield from _fill(to, tap * part + after * line, rows * out.columns, part, window)
        place = tap * part + begin * line
        source = (first + begin * op.stride[0]) * image.columns * channels
        step = op.stride[0] * image.columns * channels
        if wrapped and end > begin:
            yield from axis.wrapped(to, place, source, end - begin, line, step, image.rows * step // op.stride[0])
        else:
            yield from axis.gather(to, place, source, end - begin, line, step)


@dataclass(frozen=True)
class _Columns:
    """Columns of windows along rows of an image: `inside` are those that lie in it, `edges` the others."""

    inside: range
    edges: tuple[int, ...]
    stride: int
    left: int
    width: int
    image: int
    channels: int
    window: int

    def wraps(self, view: LayerView) -> bool:
        """Whether a row of windows ends where the next one begins."""
        count = len(self.inside) + len(self.edges)
        return bool(count * self.stride == view.op.stride[0] * self.image)

    @classmethod
    def of(cls, view: LayerView) -> _Columns:
        op, image, out = view.op, extent(view.inputs[0]), extent(view.outputs[0])
        stride, left, width = op.stride[1], op.padding[1], op.kernel[1]
        firsts = [(column, column * stride - left) for column in range(out.columns)]
        able = [column for column, first in firsts if first >= 0 and first + width <= image.columns]
        inside = range(able[0], able[-1] + 1) if able else range(0)
        edges = tuple(column for column in range(out.columns) if column not in inside)
        return cls(inside, edges, stride, left, width, image.columns, image.channels, window_bytes(view))

    def gather(self, to: str, place: int, source: int, rows: int, line: int, step: int) -> Iterator[Transfer]:
        """One row of windows' taps, for so many rows that lie inside of the image.

        `place` is that of the first row and column; `line` bytes are from row to row of it, `step` in the image.
        """
        if not rows:
            return
        part, columns = self.width * self.channels, len(self.inside)
        across, down = (columns, self.window, self.stride * self.channels), (rows, line, step)
        if columns:
            (runs, to_stride, from_stride), (times, to_step, from_step) = (
                (across, down) if rows <= columns else (down, across)
            )
            yield Transfer(
                to=Place(role=to, offset=place + self.inside[0] * self.window),
                source=Place(role="input:0", offset=source + self._at(self.inside[0]) * self.channels),
                bytes=part, runs=runs, to_stride=to_stride, source_stride=from_stride,
                times=times, to_step=to_step, source_step=from_step,
            )  # fmt: skip
        for column in self.edges:
            yield from self._edge(to, place + column * self.window, source, column, rows, line, step)

    def wrapped(
        self, to: str, place: int, source: int, rows: int, line: int, step: int, image: int
    ) -> Iterator[Transfer]:
        """The same as runs of one transfer. It begins and ends in the image, of so many bytes; the others are apart."""
        part, each, columns = self.width * self.channels, self.stride * self.channels, line // self.window
        begin = source + self._at(0) * self.channels
        first = min(max(-(begin // each), 0), rows * columns)
        end = max(min((image - part - begin) // each + 1, rows * columns), first)
        if end > first:
            yield Transfer(
                to=Place(role=to, offset=place + first * self.window),
                source=Place(role="input:0", offset=begin + first * each),
                bytes=part, runs=end - first, to_stride=self.window, source_stride=each,
            )  # fmt: skip
        for column in self.edges:
            before = min(max(-(-(first - column) // columns), 0), rows)
            behind = min(max(-(-(end - column) // columns), before), rows)
            for some, count, apart in (
                (0, before, True),
                (before, behind - before, False),
                (behind, rows - behind, True),
            ):
                if count:
                    at, there = place + some * line + column * self.window, source + some * step
                    found = self._edge(to, at, there, column, count, line, step)
                    yield from (one for one in found if apart or one.source.role != "input:0")
        for number in (*range(first), *range(end, rows * columns)):
            row, column = divmod(number, columns)
            if column in self.inside:
                yield Transfer(
                    to=Place(role=to, offset=place + number * self.window),
                    source=Place(role="input:0", offset=source + row * step + self._at(column) * self.channels),
                    bytes=part,
                )  # fmt: skip

    def _edge(
        self, to: str, place: int, source: int, column: int, rows: int, line: int, step: int
    ) -> Iterator[Transfer]:
        at = self._at(column)
        first, end = max(at, 0), min(at + self.width, self.image)
        end = max(end, first)
        before, within = min(first - at, self.width), min(end - first, self.width)
        yield from _fill(to, place, rows, before * self.channels, line)
        if within:
            yield Transfer(
                to=Place(role=to, offset=place + before * self.channels),
                source=Place(role="input:0", offset=source + first * self.channels),
                bytes=within * self.channels, runs=rows, to_stride=line, source_stride=step,
            )  # fmt: skip
        behind = (before + within) * self.channels
        yield from _fill(to, place + behind, rows, self.width * self.channels - behind, line)

    def _at(self, column: int) -> int:
        """The image's column of a window's first tap; beyond the image at the edges."""
        return column * self.stride - self.left


def _fill(to: str, offset: int, runs: int, count: int, stride: int) -> Iterator[Transfer]:
    if runs and count:
        yield Transfer(
            to=Place(role=to, offset=offset), source=Place(role=f"constant:{PADDING}"), bytes=count, runs=runs,
            to_stride=stride, source_stride=0,
        )  # fmt: skip
