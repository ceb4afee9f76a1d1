"""NE16's calls in numpy: what the C library makes of them, over bytes of L1 and the model of the engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from stages.accelerators.accelerator import Call, Pointer, Strides, Table
from stages.accelerators.ne16.descriptor import Ne16
from stages.accelerators.ne16.words import NAMES
from stages.accelerators.tiles import Part, Span, Tile, extent, reads, tiles
from stages.arithmetic.fixed_point import multiply_by_quantized_multiplier
from stages.graph import LayerView
from tests.support.ne16_model import run

BASE = 0x1000_0000
_OF_CONSTANTS = [NAMES.index(n) for n in NAMES[:6] if n not in ("infeat_ptr", "outfeat_ptr")] + [14]
_INPUT, _OUTPUT, _RESIDUAL, _HO_WO, _HI_WI, _PADDING = 1, 2, 8, 16, 17, 20


def computed(engine: Ne16, view: LayerView, inputs: tuple[np.ndarray, ...], rows: int, channels: int) -> np.ndarray:
    """The layer's output, tile by tile of so many rows and channels; tensors lie in L1 tile by tile as well."""
    out = extent(view.outputs[0])
    result = np.zeros((out.rows, out.columns, out.channels), view.outputs[0].dtype)
    for tile in tiles(view, rows, channels):
        some = result[tile.rows.first : tile.rows.end, :, tile.channels.first : tile.channels.end]
        some[...] = _tile(engine, view, inputs, tile).reshape(some.shape)
    return result.reshape(view.outputs[0].shape)


class L1:
    """Bytes, taken from the start on, 16 by 16; what is around is noise."""

    def __init__(self) -> None:
        self.bytes = np.random.default_rng(5).integers(0, 256, 1 << 20).astype(np.uint8)
        self.places: dict[str, int] = {}
        self.end = 64

    def take(self, role: str, count: int) -> None:
        self.places[role] = self.end
        self.end += -(-count // 16) * 16 + 32
        assert self.end < len(self.bytes)

    def put(self, role: str, content: np.ndarray) -> None:
        raw = np.frombuffer(np.ascontiguousarray(content).tobytes(), np.uint8)
        self.take(role, len(raw))
        self.bytes[self.places[role] :][: len(raw)] = raw


def _tile(engine: Ne16, view: LayerView, inputs: tuple[np.ndarray, ...], tile: Tile) -> np.ndarray:
    l1, parts = L1(), reads(view, tile)
    steps = []
    pieces = engine.reads_pieces(view)
    if pieces:
        l1.put("input:0", _side_by_side(view, inputs, tile, pieces))
    for number, (values, part) in enumerate(zip(inputs, parts, strict=True)):
        shape = extent(view.inputs[number])
        image = values.reshape(shape.rows, shape.columns, shape.channels)
        windows = engine.reads_windows(view)
        if not pieces:
            l1.put(f"input:{number}", _windows(view, image, tile) if windows else _cut(image, part))
        steps.append(len(part.channels))
    constants = engine.constants(view, tile.channels)
    assert len(constants) == engine.constant_bytes(view, tile.channels)
    l1.put("constants", constants)
    for name, count in engine.scratch(view, tile).items():
        l1.take(f"scratch:{name}", count)
    count = len(tile.rows) * extent(view.outputs[0]).columns * len(tile.channels)
    l1.take("output:0", count)
    found = engine.calls(view, tile, Strides(tuple(steps), len(tile.channels)))
    guard = l1.bytes.copy()
    for call in (*found.before, found.start, *found.after):
        CALLS[call.function](l1, *(_argument(l1, one) for one in call.arguments))
    _check_untouched(l1, guard, engine, view, tile, count)
    start = l1.places["output:0"]
    return l1.bytes[start : start + count].view(view.outputs[0].dtype)


def _check_untouched(l1: L1, before: np.ndarray, engine: Ne16, view: LayerView, tile: Tile, count: int) -> None:
    """Nothing but the output and scratch was written."""
    mine = np.zeros(len(before), bool)
    mine[l1.places["output:0"] :][:count] = True
    for name, size in engine.scratch(view, tile).items():
        mine[l1.places[f"scratch:{name}"] :][:size] = True
    assert not ((l1.bytes != before) & ~mine).any()


def _windows(view: LayerView, image: np.ndarray, tile: Tile) -> np.ndarray:
    """The windows of a tile's outputs, one after the other."""
    op, out = view.op, extent(view.outputs[0])
    (top, left), (down, right), (height, width) = op.padding[:2], op.stride, op.kernel
    below, behind = (out.rows - 1) * down + height, (out.columns - 1) * right + width
    padded = np.pad(image, [(top, below), (left, behind), (0, 0)], constant_values=op.input_zero_point)
    return np.stack(
        [
            padded[row * down : row * down + height, column * right : column * right + width]
            for row in range(tile.rows.first, tile.rows.end)
            for column in range(out.columns)
        ]
    )


def _side_by_side(view: LayerView, inputs: tuple[np.ndarray, ...], tile: Tile, piece: int) -> np.ndarray:
    """A piece of each input in turn."""
    shape = extent(view.outputs[0])
    apart = [
        _cut(values.reshape(shape.rows, shape.columns, shape.channels), part).reshape(-1, 1, piece)
        for values, part in zip(inputs, reads(view, tile), strict=True)
    ]
    return np.concatenate(apart, axis=1)


def _cut(image: np.ndarray, part: Part) -> np.ndarray:
    def of(span: Span) -> slice:
        return slice(span.first, span.end)

    return image[of(part.rows), :, of(part.channels)]


def _argument(l1: L1, value: Any) -> Any:
    if isinstance(value, Pointer):
        return l1.places[value.role] + value.offset
    return value.values if isinstance(value, Table) else value


def _start(l1: L1, words: tuple[int, ...], source: int, target: int, constants: int, residual: int = 0) -> None:
    moved = list(words)
    for number in _OF_CONSTANTS:
        moved[number] += BASE + constants
    moved[_INPUT] += BASE + source
    moved[_OUTPUT] += BASE + target
    moved[_RESIDUAL] += BASE + residual
    run([word % (1 << 32) for word in moved], l1.bytes, BASE)


def _start_blocks(
    l1: L1, words: tuple[int, ...], blocks: tuple[int, ...], source: int, target: int, constants: int
) -> None:
    """As ne16_start_blocks of the C library says."""
    rows, columns, in_row, in_column, out_row, out_column, last_sizes, last_patch = blocks
    for row in range(rows):
        for column in range(columns):
            own = list(words)
            keep = 0x0000FFFF
            keep |= 0xF0000000 if row == 0 else 0
            keep |= 0x00F00000 if row == rows - 1 else 0
            keep |= 0x000F0000 if column == 0 else 0
            keep |= 0x0F000000 if column == columns - 1 else 0
            own[_PADDING] &= keep
            for number, last in ((_HO_WO, last_sizes), (_HI_WI, last_patch)):
                if row == rows - 1:
                    own[number] = own[number] & 0xFFFF | last & 0xFFFF0000
                if column == columns - 1:
                    own[number] = own[number] & 0xFFFF0000 | last & 0xFFFF
            at = (source + row * in_row + column * in_column, target + row * out_row + column * out_column)
            _start(l1, tuple(own), *at, constants)


def _gather(l1: L1, image: int, strips: int, numbers: tuple[int, ...]) -> None:
    (
        rows, columns, width, step, taps, channels, stride_y, stride_x,
        height, width_in, pixel, above, left, pad,
    ) = numbers  # fmt: skip
    for y in range(rows):
        for column in range(columns):
            x = column if step == stride_x else column // width * stride_x + column % width
            for tap in range(taps):
                place = (y * stride_y + tap - above, x - left)
                to = strips + ((y * columns + column) * taps + tap) * channels
                inside = 0 <= place[0] < height and 0 <= place[1] < width_in
                at = image + (place[0] * width_in + place[1]) * pixel
                l1.bytes[to : to + channels] = l1.bytes[at : at + channels] if inside else pad % 256


def _requantize(l1: L1, sums: int, to: int, constants: int, numbers: tuple[int, ...]) -> None:
    pixels, channels, to_pixel, zero_point, low, high, _, single, multipliers, _, exponents = numbers

    def at(start: int, dtype: str, count: int) -> np.ndarray:
        size = np.dtype(dtype).itemsize * count
        return l1.bytes[start : start + size].view(dtype).astype(np.int64)

    values = at(sums, "<i4", pixels * channels).reshape(pixels, channels)
    scales = at(constants + multipliers, "<i4", channels), at(constants + exponents, "i1", channels)
    scaled = multiply_by_quantized_multiplier(values, *scales, "single" if single else "double")
    found = np.clip(scaled + zero_point, low, high)
    for pixel in range(pixels):
        l1.bytes[to + pixel * to_pixel :][:channels] = found[pixel].astype(np.uint8)


def _requantize_rvp(l1: L1, sums: int, to: int, constants: int, numbers: tuple[int, ...]) -> None:
    """Rounders are those of stages/kernels/rounding.py, of results in 16 bits."""
    pixels, channels, to_pixel, zero_point, low, high, _, single, multipliers, rounders, _ = numbers
    assert channels % 4 == to_pixel % 4 == 0
    read = lambda start, count: l1.bytes[start : start + 4 * count].view("<i4").astype(np.int64)  # noqa: E731
    values = read(sums, pixels * channels).reshape(pixels, channels)
    m, p = read(constants + multipliers, channels), read(constants + rounders, channels)
    first = values * m >> 32 if single else values * m + (1 << 30) >> 31
    scaled = (first * p + (1 << 31) >> 32).astype(np.int16).astype(np.int64)
    found = np.clip(scaled + zero_point, low, high)
    for pixel in range(pixels):
        l1.bytes[to + pixel * to_pixel :][:channels] = found[pixel].astype(np.uint8)


CALLS: dict[str, Any] = {
    "ne16_start": _start,
    "ne16_start_residual": _start,
    "ne16_start_blocks": _start_blocks,
    "ne16_gather": _gather,
    "ne16_requantize": _requantize,
    "ne16_requantize_rvp": _requantize_rvp,
}


def with_own(engine: Ne16, view: LayerView) -> LayerView:
    """The layer as the engine computes it."""
    found = engine.own(view)
    if found is None:
        return view
    layer, arrays = view.layer, dict(view.arrays)
    names = dict(layer.constants)
    for role, array in found.constants.items():
        names[role] = f"own.{role}"
        arrays[names[role]] = array
    return LayerView(layer.model_copy(update={"op": found.op, "constants": names}), view.tensors, arrays)


def call_names(engine: Ne16, view: LayerView, tile: Tile) -> list[Call]:
    found = engine.calls(view, tile, Strides((1, 1), 1))
    return [*found.before, found.start, *found.after]
