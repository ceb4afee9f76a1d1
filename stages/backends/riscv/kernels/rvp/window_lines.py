"""Layout of rvp.depthwise_s8: axis of the lines and the part of them that is in scratch."""

from __future__ import annotations

from dataclasses import dataclass

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.structure import Structure
from stages.backends.riscv.kernels.rvp.base import clip_word
from stages.backends.riscv.kernels.rvp.strips import extents, is_split, pixel_costs
from stages.ir.graph import LayerView

WINDOW = Structure.of_header("rvp_depthwise_window", __file__, "depthwise_window.h")
STRIDES = (1, 2)  # along a line
# Of a band of lines, by lanes: more rows of the output share what two bands read.
LINES_BYTES = {1: 2048, 2: 4096}
LEAST_BAND = 4


@dataclass(frozen=True)
class Words:
    """Weight words of a window row (depthwise_window_sums.h)."""

    stride: int
    columns: int

    @property
    def full(self) -> int:
        """Words of a line that all four outputs read; with stride 2 pairs of words."""
        return (self.columns + 3) // 4 if self.stride == 1 else (self.columns + 5) // 4

    @property
    def tail(self) -> int:
        """Outputs that read the next word; stride 2: whether outputs 0 and 2 skip the last."""
        return (self.columns - 1) % 4 if self.stride == 1 else int(self.columns % 4 in (0, 3))

    @property
    def starts(self) -> tuple[int, ...]:
        """First window column of each word, in order; negative for leading zeros."""
        if self.stride == 2:
            return tuple(4 * word - before for word in range(self.full) for before in (0, 2))
        full = [4 * word - output for word in range(self.full) for output in range(4)]
        return (*full, *(4 * self.full - output for output in (3, 2, 1)[: self.tail]))

    @property
    def reach(self) -> int:
        """Number of line words that a word of outputs spans."""
        return self.full + (1 if self.stride == 2 or self.tail else 0)

    def place(self, word: int) -> int:
        """Return the number of the weight word with columns 4 * `word` to 4 * `word` + 3 in place."""
        return word * (4 if self.stride == 1 else 2)

    @property
    def _made_for(self) -> int:
        """Columns of the window, in whole pairs with stride 2."""
        return self.columns if self.stride == 1 else self.columns + self.columns % 2

    @property
    def are_looped(self) -> bool:
        """Whether the columns are looped over because no function has that number."""
        return self._made_for not in {1: (1, 2, 3, 4, 5), 2: (2, 4, 6)}[self.stride]

    @property
    def function(self) -> str:
        """Entry point of the C file."""
        name = f"m{self.tail}" if self.are_looped else f"k{self._made_for}"
        return f"rvp_depthwise_s{self.stride}_{name}"


@dataclass(frozen=True)
class Lines:
    """A layer with lines along its rows or, `exchanged`, along its columns.

    All other attributes are relative to the lines.
    """

    exchanged: bool
    along_rows: bool
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    out: tuple[int, int]
    lanes: int

    @classmethod
    def of(cls, view: LayerView, lanes: int) -> Lines:
        """Return the cheapest lines of a layer."""
        return min(_possible(view, lanes), key=lambda lines: lines.cost(view))

    @property
    def words(self) -> Words:
        """The words of weights of a row."""
        return Words(self.stride[1], self.kernel[1])

    @property
    def out_words(self) -> int:
        """Words of an output row of one column class."""
        return -(-self.out[1] // (4 * self.dilation[1]))

    @property
    def line_words(self) -> int:
        """Words of an image line that the outputs read."""
        return (self.out_words - 1) * self.stride[1] + self.words.reach

    def line_count(self, band: int) -> int:
        """Return the lines that `band` output rows read."""
        return (band - 1) * self.stride[0] + self.kernel[0]

    @property
    def band(self) -> int:
        """Output rows of one row class that are computed at a time; all bands are about the same."""
        rows = -(-self.out[0] // self.dilation[0])
        lines = LINES_BYTES[self.lanes] // (16 * self.lanes * self.line_words)
        fitting = max((lines - self.kernel[0]) // self.stride[0] + 1, LEAST_BAND)
        band = -(-rows // -(-rows // fitting))
        return -(-band // LEAST_BAND) * LEAST_BAND if self.along_rows and band < rows else band

    def scratch_bytes(self) -> int:
        """Return the scratch of depthwise_window.c: border registers, masks, results, band lines."""
        registers = (
            2 + 4 * self.lanes + 4 * self.band * self.out_words + 4 * self.line_count(self.band) * self.line_words
        )
        return 4 * self.lanes * registers

    def cost(self, view: LayerView) -> float:
        """Return the instructions of all groups and classes, from counts."""
        groups = -(-view.op.out_channels // (4 * self.lanes))
        sizes = [_classes(size, dilation) for size, dilation in zip(self.out, self.dilation, strict=True)]
        classes = sum(self._class_cost(view, rows, columns) for rows in sizes[0] for columns in sizes[1])
        masks = 85 if view.op.depth_multiplier > 1 else 0
        return float(view.outputs[0].shape[0] * (groups * (classes + masks + 60) + 150))

    def _class_cost(self, view: LayerView, rows: int, columns: int) -> float:
        """Return the instructions of one class of one group.

        Per four output words and one channel of each lane: loads and products of each window row, 25 to requantize a
        word (RV32: 24), 24 overhead. Loads and stores depend on the pixels (`pixel_costs`).
        """
        out_words, whole = -(-columns // 4), columns % 4 == 0
        line_words = (out_words - 1) * self.stride[1] + self.words.reach
        window_rows = self.kernel[0] * (1 + is_split(view))
        come, go = _moves(view, self.lanes)
        cost = 0.0
        for row in range(0, rows, self.band):
            band = min(self.band, rows - row)
            runs, size = (out_words, band) if self.along_rows else (band, out_words)
            blocks = [4] * (size // 4) + ([size % 4] if size % 4 else [])
            run = (
                4 * sum(window_rows * _row_cost(self.words, count) + (23 + self.lanes) * count + 24 for count in blocks)
                + 80
            )
            written = size * go + (95 if self.along_rows or whole else 190)
            lines = self.line_count(band)
            around = self._brought(view, row, lines, line_words) + 450 + 60 * self.lanes
            cost += runs * (run + written) + lines * line_words * come + around
        return cost

    def _brought(self, view: LayerView, row: int, lines: int, words: int) -> int:
        """Return the overhead of the calls of `bring` in depthwise_window_lines.h."""
        rows, columns, *_ = extents(view, exchanged=self.exchanged)
        top, left = view.op.padding[:2][::-1] if self.exchanged else view.op.padding[:2]
        rows, columns = -(-rows // self.dilation[0]), -(-columns // self.dilation[1])
        first = row * self.stride[0] - -(-top // self.dilation[0])
        inside = max(min(lines + first, rows) - max(first, 0), 0)
        before = -(-left // self.dilation[1])
        outside_words = min(-(-before // 4), words)
        whole = min(max((columns - 4 * outside_words + before) // 4, 0), words - outside_words)
        calls = words - whole + min(whole, inside)
        return 100 * calls + 70 * (lines - inside)


def _classes(size: int, dilation: int) -> list[int]:
    """Return the output rows or columns in each class."""
    return [-(-(size - first) // dilation) for first in range(min(dilation, size))]


def _possible(view: LayerView, lanes: int) -> list[Lines]:
    op, (_, *out, _) = view.op, view.outputs[0].shape
    classes = []
    for exchanged in (False, True):
        row, column = (1, 0) if exchanged else (0, 1)
        kernel, stride, dilation, size = (
            (int(pair[row]), int(pair[column])) for pair in (op.kernel, op.stride, op.dilation, out)
        )
        along = (False, True) if stride[0] == stride[1] else (False,)
        if stride[1] in STRIDES:
            classes += [Lines(exchanged, rows, kernel, stride, dilation, size, lanes) for rows in along]
    return classes


def why_not_lines(view: LayerView) -> str:
    """Return why lines cannot run through the layer's images, '' if they can."""
    if any(stride > 1 and dilation > 1 for stride, dilation in zip(view.op.stride, view.op.dilation, strict=True)):
        return "a dilated window with a stride is not supported"
    return "" if _possible(view, 1) else "neither of the strides is 1 or 2"


def _row_cost(words: Words, count: int) -> int:
    """Return the loads and products of a window row for a number of output words.

    Other word counts use a loop.
    """
    weights = len(words.starts)
    products = weights if words.stride == 1 else 2 * weights - 2 * words.tail
    around = 4 * words.full + 3 * count + 2 if words.are_looped else 4
    return count * (products + words.reach) + weights + around


def _moves(view: LayerView, lanes: int) -> tuple[int, int]:
    """Return the instructions of a word that is loaded and one that is stored."""
    come, go = pixel_costs(view.op.out_channels, lanes)
    come -= 3
    if view.op.depth_multiplier > 1:
        sources = -(-4 * lanes // view.op.depth_multiplier)
        come = 32 if sources == 1 else 55 + 25 * sources
    return come, go


def fields(view: LayerView, lines: Lines) -> dict[str, int]:
    """Return the fields of rvp_depthwise_window."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    steps, out_steps = (x.shape[2] * x.shape[3], x.shape[3]), (y.shape[2] * y.shape[3], y.shape[3])
    padding, words = tuple(op.padding[:2]), lines.words
    if lines.exchanged:
        steps, out_steps, padding = steps[::-1], out_steps[::-1], padding[::-1]
    rows, columns, out_rows, out_columns = extents(view, exchanged=lines.exchanged)
    addends = 1 + is_split(view)
    return {
        "rows": rows,
        "columns": columns,
        "row_step": steps[0],
        "column_step": steps[1],
        "out_rows": out_rows,
        "out_columns": out_columns,
        "out_row_step": out_steps[0],
        "out_column_step": out_steps[1],
        "top": padding[0],
        "left": padding[1],
        "row_dilation": lines.dilation[0],
        "column_dilation": lines.dilation[1],
        "fill": op.input_zero_point,
        "flip": INT8_OFFSET[x.dtype],
        "clip": clip_word(view),
        "channels": op.out_channels,
        "multiplier": op.depth_multiplier,
        "kernel_rows": lines.kernel[0],
        "row_stride": lines.stride[0],
        "full_words": words.full,
        "window_words": words.reach,
        "record": record(view, lines),
        "addends": addends,
        "band": lines.band,
        "along_rows": lines.along_rows,
    }


def record(view: LayerView, lines: Lines) -> int:
    """Registers of params for a channel of each lane."""
    return 3 + (1 + is_split(view)) * lines.kernel[0] * len(lines.words.starts)
