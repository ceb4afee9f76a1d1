"""Depthwise layers with a channel per lane: channels by vector, and the cost."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from stages.backends.cortex_m.kernels.mve.lines import IMAGE, is_plain
from stages.backends.cortex_m.kernels.mve.requantize_tir import requantize
from stages.backends.cortex_m.kernels.mve.walk import FULL as GROUP
from stages.backends.cortex_m.kernels.mve.walk import Walk, flip, walks
from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte
from stages.ir.graph import LayerView
from stages.support.lazy import T, np, npt

if TYPE_CHECKING:
    from stages.backends.cortex_m.kernels.mve.rounding import Mode

QUAD = 4
FEW = 4  # taps that have functions of their own
BAND = 4096  # bytes of lines in scratch, where one row of windows does not need more
MOST_LINES = 8192  # bytes under a row of windows that have lines of all channels
FIELDS = Structure(  # of lanes.h
    "mve_lanes",
    (
        *IMAGE,
        *("zero_point", "low", "high", "x_step", "x_row", "columns", "pairs", "group_bytes"),
        *("y_step", "rows", "band", "lines_y", "left_out", "top", "span"),
        *("by_group", "in_rows", "loaded", "first"),
    ),
)


@dataclass(frozen=True)
class ChannelGroup:
    """`channels` neighbouring channels from `first` on, `lanes` at a time.

    The last group may overlap the one before it.
    """

    first: int
    channels: int
    lanes: int

    @property
    def name(self) -> str:
        """Part of the C function's name."""
        return "lanes" if self.lanes == GROUP else "quads"

    @property
    def groups(self) -> int:
        """Vectors that hold the channels, the last possibly incomplete."""
        return -(-self.channels // self.lanes)

    def words(self, taps: int) -> int:
        """Words of a group's constants: bias, multiplier, rounder and weights per lane."""
        return 3 * self.lanes + taps * self.lanes // 4

    def numbers(self) -> npt.NDArray[np.int64]:
        """Return int64 [groups, lanes]: channel numbers, -1 for lanes after the last channel."""
        starts = np.maximum(np.minimum(np.arange(self.groups) * self.lanes, self.channels - self.lanes), 0)
        numbers_by_group = starts[:, None] + np.arange(self.lanes)
        return np.where(numbers_by_group < self.channels, numbers_by_group + self.first, -1)


@dataclass(frozen=True)
class Lanes:
    """Window walk of a layer, and the channel groups that share its pixels."""

    view: LayerView
    walk: Walk
    parts: tuple[ChannelGroup, ...]
    mode: Mode

    @property
    def taps(self) -> int:
        """Taps of a window."""
        return prod(self.walk.kernel)

    @property
    def in_place(self) -> bool:
        """Whether the image is read in place: no sign change and no padding.

        A vector with more lanes than channels also reads part of the next pixel.
        """
        walk = self.walk
        bytes_of_image = walk.size[0] * walk.size[1] * walk.channels
        last = (walk.needed[0] - 1) * walk.size[1] + walk.needed[1] - walk.repeat  # the pixel of the last tap
        ends = (last * walk.channels + max(part.first + part.channels, part.lanes) for part in self.parts)
        return walk.is_inside and not flip(self.view) and max(ends) <= bytes_of_image

    @property
    def is_long(self) -> bool:
        """Whether lines of all channels exceed the scratch."""
        bytes_of_window = self.walk.needed[1] * self.walk.channels * self.walk.span[0]
        return not self.in_place and bytes_of_window > MOST_LINES

    @property
    def by_group(self) -> bool:
        """Whether lines hold 16 channels and are reloaded by group, since not all channels fit."""
        return self.is_long and self.walk.channels > GROUP

    @property
    def _steps(self) -> tuple[int, int]:
        """Return the bytes between rows and between columns where windows are read."""
        if self.in_place:
            return self.walk.size[1] * self.walk.channels, self.walk.channels
        pixel = GROUP if self.by_group else self.walk.channels
        return self.walk.needed[1] * pixel, pixel

    @property
    def band(self) -> int:
        """Output rows computed from the lines at a time."""
        most = max(BAND // self._steps[0], self.walk.span[0])
        return min(self.walk.out[0], (most - self.walk.span[0]) // self.lines_y + 1)

    @property
    def scratch(self) -> int:
        """Bytes of a band's lines and the bytes read after them; 1 without lines."""
        return 1 if self.in_place else self._lines_of(self.band) * self._steps[0] + GROUP

    @property
    def lines_y(self) -> int:
        """Lines between window rows; rows between windows have no line."""
        return min(self.walk.stride[0], self.walk.span[0])

    @property
    def in_rows(self) -> bool:
        """Whether lines are consecutive image rows of the same length."""
        walk = self.walk
        are_rows = not self.by_group and walk.before[1] == 0 and walk.needed[1] == walk.size[1]
        return are_rows and walk.stride[0] == self.lines_y

    def _lines_of(self, rows: int) -> int:
        return (rows - 1) * self.lines_y + self.walk.span[0]

    @property
    def offsets(self) -> list[int]:
        """Return the offsets of all taps but the first (at least one number)."""
        return self.walk.offsets(*self._steps)[1:] or [0]

    def function(self, part: ChannelGroup) -> str:
        """Return the C function of a channel group."""
        taps = str(self.taps) if self.taps <= FEW else ("even", "odd")[self.taps % 2]
        clipped = "" if is_plain(self.view) or part.lanes == QUAD else "_clipped"
        return f"mve_depthwise_{part.name}_{taps}_{self.mode}{clipped}"

    def fields(self, part: ChannelGroup) -> dict[str, int]:
        """Return the fields of lanes.h."""
        op, walk, flipped = self.view.op, self.walk, flip(self.view)
        line, pixel = self._steps
        offset = flipped if part.lanes == GROUP else 0
        x_step = walk.stride[1] * pixel * walk.repeat
        keeps_lines = not self.by_group and self.band == walk.out[0]
        return {
            "height": walk.size[0],
            "width": walk.size[1],
            "pixel": walk.channels,
            "left": walk.before[1],
            "pitch": line,
            "fill": op.input_zero_point - flipped,
            "flip": flipped,
            "zero_point": op.output_zero_point - offset,
            "low": op.act_min - offset,
            "high": op.act_max - offset,
            "x_step": x_step,
            "x_row": (walk.stride[0] if self.in_place else self.lines_y) * line - walk.columns * x_step,
            "columns": walk.columns,
            "pairs": (self.taps - 1) // 2,
            "group_bytes": 4 * part.words(self.taps),
            "y_step": walk.lanes,
            "rows": walk.out[0],
            "band": 0 if self.in_place else self.band,
            "lines_y": self.lines_y,
            "left_out": walk.stride[0] - self.lines_y,
            "top": walk.before[0],
            "span": walk.span[0],
            "by_group": int(self.by_group),
            "in_rows": int(self.in_rows),
            "loaded": int(keeps_lines and part != self.parts[0]),
            "first": part.first,
        }

    def cost(self) -> float:
        """Return the instructions of one image, from counts."""
        return 10.0 + sum(self._part_cost(part) for part in self.parts)

    def _part_cost(self, part: ChannelGroup) -> float:
        rows = self.walk.out[0]
        total = 70 + part.groups * (18 + rows * (7 + self.walk.columns * self._of_outputs(part.lanes)))
        if self.in_place or self.fields(part)["loaded"]:
            return total
        groups = part.groups if self.by_group and part.lanes == GROUP else 1
        return total + groups * self._loading(part)

    def _of_outputs(self, lanes: int) -> float:
        """Instructions of the outputs of a vector (lanes.S, quads.S)."""
        taps, pairs = self.taps, (self.taps - 1) // 2
        if lanes == QUAD:
            few, (odd, even, pair), lowered, clipped = (13, 19, 24, 29), (18, 24, 12), 2, 0
        else:
            few, (odd, even, pair), lowered, clipped = (45, 52, 66, 73), (49, 57, 23), 8, 4 if taps <= 2 else 6
        instructions = few[taps - 1] if taps <= FEW else (odd if taps % 2 else even) + pairs * pair
        return instructions + lowered * (self.mode == "lowered") + clipped * (not is_plain(self.view))

    def _loading(self, part: ChannelGroup) -> float:
        """Instructions of loading the lines of up to 16 channels, or of all."""
        walk = self.walk
        rows, bands = self._lines_of(walk.out[0]), -(-walk.out[0] // self.band)
        columns = min(walk.size[1], walk.needed[1])
        if self.by_group:
            row: float = columns * (4 if part.channels >= GROUP and not flip(self.view) else 6)
        else:
            row = columns * walk.channels / 16 * (4 if flip(self.view) else 3)
        kept = (walk.span[0] - self.lines_y) * (bands - 1)
        return 30 + bands * 45 + rows * (row if self.in_rows else 50 + row) + kept * self._steps[0] / 16 * 3


def lanes_of(view: LayerView, mode: Mode) -> Lanes:
    """Return the cheapest walk and channel groups.

    Each 40 lanes of constants add one percent to the cost.
    """
    candidates = [Lanes(view, walk, parts, mode) for walk in walks(view) for parts in _shares(walk)]
    fitting = [lanes for lanes in candidates if lanes.walk.is_plain or not lanes.is_long]
    return min(fitting, key=lambda lanes: lanes.cost() * (1 + lanes.walk.lanes / 4000))


def _shares(walk: Walk) -> list[tuple[ChannelGroup, ...]]:
    """Return the possible divisions of a pixel's channels.

    Groups of 16, groups of 16 with quads for the rest, or quads only. Where several outputs count as one, there is one
    group set.
    """
    channels, (groups, rest) = walk.lanes, divmod(walk.lanes, GROUP)
    divisions: list[tuple[ChannelGroup, ...]] = [(ChannelGroup(0, channels, GROUP),)]
    if groups and rest and walk.repeat == 1:
        first = min(channels - rest, channels - QUAD)
        divisions.append((ChannelGroup(0, channels - rest, GROUP), ChannelGroup(first, channels - first, QUAD)))
    if channels < GROUP:
        divisions.append((ChannelGroup(0, channels, QUAD),))
    return divisions


def packed(params: np.ndarray, weights: np.ndarray, part: ChannelGroup, channels: int) -> np.ndarray:
    """Return a part's constants, int32 [groups, words].

    From params [3, channels] and weights [channels, taps] of the layer. Vector j of a group of 16 holds channels j, j +
    4, j + 8, j + 12, the order that narrowing interleaves.
    """
    numbers = part.numbers()
    known, of_layer = numbers >= 0, numbers % channels
    values = np.where(known[None], params[:, of_layer], 0).astype(np.int32)
    if part.lanes == GROUP:
        values = values.reshape(3, -1, 4, 4).swapaxes(2, 3)
    by_group = values.reshape(3, part.groups, part.lanes).swapaxes(0, 1).reshape(part.groups, -1)
    by_tap = np.where(known[..., None], weights[of_layer], 0).astype(np.int8).swapaxes(1, 2)
    words = np.ascontiguousarray(by_tap).view(np.int32).reshape(part.groups, -1)
    return np.ascontiguousarray(np.concatenate([by_group, words], 1))


def constants_of(lanes: Lanes, params: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
    """Return the constants of all parts by key."""
    channels = int(lanes.view.op.in_channels)
    constants: dict[str, Any] = {"offsets": np.array(lanes.offsets, np.int32)}
    for part in lanes.parts:
        constants[part.name] = packed(params, weights, part, channels)
        constants[f"{part.name}_fields"] = FIELDS.of(lanes.fields(part))
    return constants


def _block(lanes: Lanes, part: ChannelGroup) -> Block:
    """Return the block that computes all outputs of a channel group."""
    op, x, y = lanes.view.op, lanes.view.inputs[0], lanes.view.outputs[0]
    (_, height, width, _), (_, out_height, out_width, _) = x.shape, y.shape
    repeat, width_of_lanes = lanes.walk.repeat, part.lanes
    channels = part.channels // repeat
    offset = INT8_OFFSET[x.dtype]
    most, quads = part.channels, width_of_lanes // 4

    def meaning(b: Any) -> None:
        with loop(("oy", out_height), ("ox", out_width), ("c", channels)) as (oy, ox, c):
            number = c + (oy * out_width + ox) % repeat * channels if repeat > 1 else c
            group = T.truncdiv(number, width_of_lanes)
            lane = T.truncmod(number, width_of_lanes)
            if most > width_of_lanes and most % width_of_lanes:
                group = T.min(group, part.groups - 1)
                lane = number - T.min(group * width_of_lanes, most - width_of_lanes)
            at = T.truncmod(lane, 4) * 4 + T.truncdiv(lane, 4) if width_of_lanes == GROUP else lane
            store(b.acc, b.constants[group, at], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                value = activation(lanes.view, b.x, (oy, ox), (ky, kx), c, offset)
                word = 3 * width_of_lanes + (ky * op.kernel[1] + kx) * quads + T.truncdiv(lane, 4)
                weight = byte(b.constants[group, word], T.truncmod(lane, 4))
                store(b.acc, b.acc[0] + value * weight, 0)
            multiplier, rounder = (b.constants[group, at + n * width_of_lanes] for n in (1, 2))
            store(b.y, output(lanes.view, requantize(b.acc[0], multiplier, rounder, lanes.mode)), oy, ox, c)

    operands = (
        Operand("x", (height, width, channels), x.dtype),
        Operand("constants", (part.groups, part.words(lanes.taps)), "int32"),
        Operand("y", (out_height, out_width, channels), y.dtype, "w"),
        Operand("offsets", (len(lanes.offsets),), "int32"),
        Operand("lines", (lanes.scratch,), "int8", "w"),
        Operand("fields", FIELDS.shape, "int32"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.constants, b.y, b.offsets, most, b.lines, b.fields]  # noqa: E731
    return Block(part.name, operands, meaning, lanes.function(part), arguments)


def depthwise(lanes: Lanes) -> Lowering:
    """Return the layer as a loop over images."""
    x, y = lanes.view.inputs[0], lanes.view.outputs[0]
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        given = {
            part.name: (
                f.constant(part.name, (part.groups, part.words(lanes.taps)), "int32"),
                f.constant(f"{part.name}_fields", FIELDS.shape, "int32"),
            )
            for part in lanes.parts
        }
        offsets = f.constant("offsets", (len(lanes.offsets),), "int32")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        lines = f.scratch("lines", (lanes.scratch,), "int8")
        with f.loop(("n", y.shape[0])) as (n,):
            for part in lanes.parts:
                constants, fields = given[part.name]
                f.place(
                    _block(lanes, part),
                    x=(image, n, 0, 0, part.first),
                    y=(out, n, 0, 0, part.first),
                    constants=constants,
                    fields=fields,
                    offsets=offsets,
                    lines=lines,
                    acc=acc,
                )
    return f.lowering()
