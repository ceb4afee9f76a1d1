"""Layout of rvp.quads_s8: quads of output bytes, their line words, and lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd, lcm

from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView

QUADS = Structure.of_header("rvp_quads", __file__, "quads.h")
LINES_BYTES = {1: 2048, 2: 4096}  # of a band of lines, by lanes: more rows of the output share what two bands read
AT_ONCE = 4  # periods


@dataclass(frozen=True)
class Quad:
    """Words of a line that a quad reads from `start` on.

    head  for its first two bytes only
    full  for all four bytes
    tail  for the last two only
    """

    start: int
    head: int
    full: int
    tail: int

    @property
    def words(self) -> int:
        """Words of an image line that the quad reads."""
        return self.head + self.full + self.tail


@dataclass(frozen=True)
class QuadLines:
    """A layer with lines along its rows or, `exchanged`, along its only column.

    Pairs are (rows, columns) of the lines. `depth` and `units` are the input and output channels of a group. `split`:
    the distance in rows, periods or groups between the work of lane 0 and lane 1; all 0 if lane 1 is idle.
    """

    exchanged: bool
    image: tuple[int, int]
    out: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    groups: int
    depth: int
    units: int
    lanes: int
    split: tuple[int, int, int] = (0, 0, 0)

    @classmethod
    def of(cls, view: LayerView, lanes: int) -> QuadLines:
        """Return the lines of a layer; an image of one column counts as one of one row."""
        op = view.op
        image, out = view.inputs[0].shape[1:3], view.outputs[0].shape[1:3]
        exchanged = image[1] == out[1] == op.kernel[1] == 1 and out[0] > 1 and not any(op.padding[1::2])

        def pair(values: Sequence[int]) -> tuple[int, int]:
            row, column = values
            return (column, row) if exchanged else (row, column)

        lines = cls(
            exchanged,
            image=pair(image),
            out=pair(out),
            kernel=pair(op.kernel),
            stride=pair(op.stride),
            dilation=pair(op.dilation),
            padding=pair(op.padding[:2]),
            groups=op.groups,
            depth=op.in_channels // op.groups,
            units=op.out_channels // op.groups,
            lanes=lanes,
        )
        return min((replace(lines, split=split) for split in lines._splits()), key=cls.cost)

    def _splits(self) -> list[tuple[int, int, int]]:
        """Return the possible splits over lanes, the preferred first among equals."""
        if self.lanes == 1:
            return [(0, 0, 0)]
        if self.groups > 1:
            return [(0, 0, 1)]
        return [(-(-self.out[0] // 2), 0, 0), (0, -(-self.row_periods // 2), 0), (0, 0, 0)]

    @property
    def step(self) -> int:
        """Bytes from one window to the next in a line."""
        return self.stride[1] * self.depth

    @property
    def period(self) -> int:
        """Columns of the output after which quads begin at the same byte of a word again."""
        return lcm(4 // gcd(4, self.units), 4 // gcd(4, self.step))

    @property
    def period_words(self) -> int:
        """Words of a line from period to period."""
        return self.period * self.step // 4

    @cached_property
    def quads(self) -> list[Quad]:
        """Quads of a period."""
        return [self._quad(number) for number in range(self.period * self.units // 4)]

    def _quad(self, number: int) -> Quad:
        columns = [(4 * number + byte) // self.units for byte in range(4)]
        reach = ((self.kernel[1] - 1) * self.dilation[1] + 1) * self.depth
        starts = [column * self.step // 4 for column in columns]
        ends = [(column * self.step + reach - 1) // 4 + 1 for column in columns]
        head, tail = starts[2] - starts[0], ends[3] - max(ends[1], starts[2])
        return Quad(starts[0], head, max(ends[1] - starts[2], 0), tail)

    @property
    def weight_words(self) -> int:
        """Words of weights of a quad and row, with zeros for quads that need fewer."""
        return max(quad.words for quad in self.quads)

    @property
    def row_periods(self) -> int:
        """Periods of a whole output row."""
        return -(-self.out[1] // self.period)

    @property
    def lane_rows(self) -> int:
        """Output rows per lane."""
        return self.split[0] or self.out[0]

    @property
    def periods(self) -> int:
        """Periods of a row per lane."""
        return self.split[1] or self.row_periods

    @property
    def parts(self) -> int:
        """Groups, or pairs of groups."""
        return -(-self.groups // self.lanes) if self.groups > 1 else 1

    @property
    def line_words(self) -> int:
        """Words of a line that all quads read."""
        return (self.periods - 1) * self.period_words + max(quad.start + quad.words for quad in self.quads)

    def line_count(self, band: int) -> int:
        """Return the lines that `band` output rows read."""
        return (band - 1) * self.stride[0] + (self.kernel[0] - 1) * self.dilation[0] + 1

    @property
    def band(self) -> int:
        """Output rows whose lines are in scratch at a time; all bands have about the same height."""
        lines = LINES_BYTES[self.lanes] // (4 * self.lanes * self.line_words)
        fitting = max((lines - self.line_count(1)) // self.stride[0] + 1, 2)
        return -(-self.lane_rows // -(-self.lane_rows // fitting))

    def scratch_bytes(self) -> int:
        """Scratch for the lines of a band and one register that copies may overrun."""
        return (self.line_count(self.band) * self.line_words + 1) * 4 * self.lanes

    def weight_bytes(self) -> int:
        """Bytes of the packed weights of all groups."""
        return self.parts * len(self.quads) * self.kernel[0] * self.weight_words * 16 * self.lanes

    @property
    def function(self) -> str:
        """Entry point of quads.c."""
        words, first = self.period_words, self.quads[0]
        known = {(0, 1, 1): "k3", (0, 2, 0): "k5"}.get((first.head, first.full, first.tail))
        if known and words == len(self.quads) == 1:
            return f"rvp_quads_{known}"
        return f"rvp_quads_p{words if words <= 3 else 'n'}"

    def quad_channels(self) -> list[list[list[int]]]:
        """Return the output channels of the bytes of each quad, by lane.

        The quads of a part are neighbours.
        """
        channels = []
        for part in range(self.parts):
            first = part * self.lanes if self.groups > 1 else 0
            groups = [min(first + lane, self.groups - 1) for lane in range(self.lanes)]
            for number in range(len(self.quads)):
                units = [(4 * number + byte) % self.units for byte in range(4)]
                channels.append([[group * self.units + unit for unit in units] for group in groups])
        return channels

    def fields(self) -> dict[str, int]:
        """Return the fields of QUADS except those about values."""
        rows, periods, groups = self.split
        return {
            **dict(zip(("rows", "columns"), self.image, strict=True)),
            "channels": self.depth * self.groups,
            "depth": self.depth,
            **dict(zip(("out_rows", "out_columns"), self.out, strict=True)),
            "out_channels": self.units * self.groups,
            "units": self.units,
            "groups": self.groups,
            "kernel_rows": self.kernel[0],
            **dict(zip(("row_stride", "column_stride"), self.stride, strict=True)),
            "row_dilation": self.dilation[0],
            **dict(zip(("top", "left"), self.padding, strict=True)),
            "quads": len(self.quads),
            "period": self.period,
            "period_words": self.period_words,
            "periods": self.periods,
            "line_words": self.line_words,
            "weight_words": self.weight_words,
            "band": self.band,
            "lane_rows": rows,
            "lane_columns": periods * self.period,
            "lane_groups": groups,
        }

    def cost(self) -> float:
        """Return the instructions of an image: lines, and quads of up to four periods at a time."""
        bands, lanes = -(-self.lane_rows // self.band), self.lanes if any(self.split) else 1
        lines = lanes * bands * (80 + self.line_count(self.band) * self._line())
        blocks = [AT_ONCE] * (self.periods // AT_ONCE)
        blocks += [self.periods % AT_ONCE] * (self.periods % AT_ONCE > 0)
        outputs = sum(self._block(quad, size) for quad in self.quads for size in blocks)
        return 120 + self.parts * (lines + self.lane_rows * (40 + outputs))

    def _line(self) -> float:
        """Return the instructions of copying a line by words, and by bytes at unaligned ends."""
        if self.groups > 1:
            return 40.0 + (5 if self.depth % 4 == 0 else 36) * self.line_words
        row, register = self.image[1] * self.depth, 4 * self.lanes
        behind = (-(-row // register) + 1) * register
        whole = sum(register <= start <= self.image[0] * row - behind for start in range(0, self.image[0] * row, row))
        by_bytes = (1 - whole / self.image[0]) * (20 + 8 * min(row, register // 2 + 2))
        return 50 + by_bytes + 5 * self.line_words

    def _block(self, quad: Quad, size: int) -> float:
        halves, full = quad.head + quad.tail, quad.full
        kinds = 1 if self.function[-2] == "k" else (quad.head > 0) + (full > 0) + (quad.tail > 0)
        row = 10 * kinds + halves * (5 + 3 * size) + full * (7 + 5 * size)
        aligned = self.out[1] * self.units * self.groups % 4 == 0
        stores = size * (3 if aligned else 18 * self.lanes)
        return self.kernel[0] * row + 50 + 23 * size + stores
