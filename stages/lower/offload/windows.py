"""Gather convolution windows by transfers, for engines that only multiply rows of numbers.

For each output pixel of a tile the bytes of its window are copied, row by row. Bytes beyond the image are copies of the
input's zero point.

    image, window 2x3, steps of 2       side by side, one output pixel after the other
    a b c d e                           . a b | . f g     b c d | g h i     d e . | i j .
    f g h i j

The cheapest of these variants is taken:

    apart    a transfer for each window row of a row of windows, with a run for each window; for a column of windows
             if the tile has more rows than columns. Bytes beyond the image are filled
    filled   everything is filled first, in one piece; then only bytes of the image are copied
    wrapped  if a row of windows ends where the next begins, as with steps of one, all windows are runs of one
             transfer. Windows at the edges read into the next row, and are filled afterwards
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stages.backends.accelerators.tiles import Tile, extent
from stages.ir.graph import LayerView
from stages.ir.operators.products import Conv2D
from stages.lower.offload.program import Place, Transfer

PADDING = "padding"
_BLOCK = 256  # minimum bytes of padding of one transfer


def why_not_gathered(view: LayerView) -> str:
    """Return why the windows of a convolution cannot be gathered, '' if they can."""
    op, image = view.op, view.inputs[0]
    if not isinstance(op, Conv2D):
        return f"windows of {op.op} have one channel; gathering needs windows of all channels"
    if op.dilation != (1, 1):
        return f"its windows have taps {op.dilation[0]}x{op.dilation[1]} apart; gathering needs a dilation of 1"
    if op.groups != 1:
        return f"it has {op.groups} groups; gathering needs windows of all channels"
    if not image.lies_as("NHWC"):
        return f"tensor {image.name} is {image.layout}; gathering needs NHWC"
    return ""


def window_bytes(view: LayerView) -> int:
    """Return the bytes of one window: all taps and channels of an 8-bit image."""
    height, width = view.op.kernel
    return int(height * width * view.op.in_channels)


def padding_block(view: LayerView) -> bytes:
    """Return the bytes that transfers copy for windows beyond the image.

    Its length is a multiple of a window row.
    """
    return bytes([view.op.input_zero_point & 0xFF]) * _padding_bytes(view)


def _padding_bytes(view: LayerView) -> int:
    row: int = view.op.kernel[1] * view.op.in_channels
    return -(-_BLOCK // row) * row if any(view.op.padding) else row


def gather(view: LayerView, tile: Tile, to: str, cost: Callable[[Transfer], float]) -> tuple[Transfer, ...]:
    """Return the cheapest transfers that gather the windows of a tile's rows into `to`.

    `cost` returns the cost of one transfer. It is multiplied by the transfer's `times`.
    """
    return min(
        gather_variants(view, tile, to),
        key=lambda variant: sum(transfer.times * cost(transfer) for transfer in variant),
    )


def gather_variants(view: LayerView, tile: Tile, to: str) -> list[tuple[Transfer, ...]]:
    """Return all variants; first `apart`, which writes each byte once."""
    axis = _Columns.of(view)
    variants = [tuple(_taps(view, tile, to, axis))]
    if any(transfer.source.role == f"constant:{PADDING}" for transfer in variants[0]):
        inside = [transfer for transfer in variants[0] if transfer.source.role != f"constant:{PADDING}"]
        total = len(tile.rows) * extent(view.outputs[0]).columns * axis.window
        variants.append((*_fill_all(to, total, _padding_bytes(view)), *inside))
    if axis.wraps(view):
        variants.append(tuple(_taps(view, tile, to, axis, wrapped=True)))
    return variants


def _fill_all(to: str, total: int, block: int) -> Iterator[Transfer]:
    yield from _fill(to, 0, total // block, block, block)
    yield from _fill(to, total // block * block, 1, total % block, block)


def _taps(view: LayerView, tile: Tile, to: str, axis: _Columns, *, wrapped: bool = False) -> Iterator[Transfer]:
    op, image, out = view.op, extent(view.inputs[0]), extent(view.outputs[0])
    channels, window = image.channels, window_bytes(view)
    part = op.kernel[1] * channels
    for tap in range(op.kernel[0]):
        first = tile.rows.first * op.stride[0] - op.padding[0] + tap  # the image row of the tile's first row
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
    """Columns of windows along an image row: `inside` lie in it, `edges` reach beyond it."""

    inside: range
    edges: tuple[int, ...]
    stride: int
    left: int
    width: int
    image: int
    channels: int
    window: int

    def wraps(self, view: LayerView) -> bool:
        """Return whether a row of windows ends where the next one begins."""
        count = len(self.inside) + len(self.edges)
        return bool(count * self.stride == view.op.stride[0] * self.image)

    @classmethod
    def of(cls, view: LayerView) -> _Columns:
        """Return the columns of a layer's windows."""
        op, image, out = view.op, extent(view.inputs[0]), extent(view.outputs[0])
        stride, left, width = op.stride[1], op.padding[1], op.kernel[1]
        firsts = [(column, column * stride - left) for column in range(out.columns)]
        able = [column for column, first in firsts if first >= 0 and first + width <= image.columns]
        inside = range(able[0], able[-1] + 1) if able else range(0)
        edges = tuple(column for column in range(out.columns) if column not in inside)
        return cls(inside, edges, stride, left, width, image.columns, image.channels, window_bytes(view))

    def gather(self, to: str, place: int, source: int, rows: int, line: int, step: int) -> Iterator[Transfer]:
        """Yield transfers for one window row, for `rows` rows of windows inside of the image.

        `place` is the destination of the first window. Rows are `line` bytes apart there, `step` bytes in the image.
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
        """Yield the same as runs of one transfer within the image, and the rest apart."""
        part, window_step, columns = self.width * self.channels, self.stride * self.channels, line // self.window
        begin = source + self._at(0) * self.channels
        first = min(max(-(begin // window_step), 0), rows * columns)
        end = max(min((image - part - begin) // window_step + 1, rows * columns), first)
        if end > first:
            yield Transfer(
                to=Place(role=to, offset=place + first * self.window),
                source=Place(role="input:0", offset=begin + first * window_step),
                bytes=part, runs=end - first, to_stride=self.window, source_stride=window_step,
            )  # fmt: skip
        for column in self.edges:
            before = min(max(-(-(first - column) // columns), 0), rows)
            behind = min(max(-(-(end - column) // columns), before), rows)
            for first_row, count, is_at_border in (
                (0, before, True),
                (before, behind - before, False),
                (behind, rows - behind, True),
            ):
                if count:
                    at, row_source = place + first_row * line + column * self.window, source + first_row * step
                    transfers = self._edge(to, at, row_source, column, count, line, step)
                    yield from (transfer for transfer in transfers if is_at_border or transfer.source.role != "input:0")
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
        """Return the image column of a window's first tap; outside of the image at the edges."""
        return column * self.stride - self.left


def _fill(to: str, offset: int, runs: int, count: int, stride: int) -> Iterator[Transfer]:
    if runs and count:
        yield Transfer(
            to=Place(role=to, offset=offset), source=Place(role=f"constant:{PADDING}"), bytes=count, runs=runs,
            to_stride=stride, source_stride=0,
        )  # fmt: skip
