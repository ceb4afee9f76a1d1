"""Geometry and constants of depthwise convolution.

A row of outputs is computed in vectors, from lines of the padded image. A vector has `pixels` output pixels with all
their channels, or up to `lanes` channels of one pixel. Some pixels of a vector with a stride above 1 read columns that
are not neighbours. Then a line has the columns by phase: with stride 2 columns 0, 2, 4, … and after them 1, 3, 5, …

Output channels that share input channels are `few`: lines are rows of the image, and vectors are loaded by index.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod

from stages.backends.kernels.eight_bit import sums
from stages.backends.kernels.structure import Structure
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np, npt

FIELDS = Structure.of_header("rvv_depthwise", __file__, "depthwise.h")
_INT16 = 2  # bytes of an element of a line


@dataclass(frozen=True)
class Arithmetic:
    """Constants of a layer.

    weights  [taps + 1, channels]: less their zero point, shifted to the left by the channel's left shift. The last row
             has the right shifts
    params   int32 [3, channels]: bias with the input's zero point, multiplier (of one rounding twice that), limit
             (rvv_asm.h)
    mode     relu, signed, once
    """

    weights: npt.NDArray[np.int64]
    params: npt.NDArray[np.int32]
    mode: str


def arithmetic(view: LayerView) -> Arithmetic:
    """Return the constants of a layer.

    Raise ValueError if shifted weights do not fit 16 bits, or shifted sums that are rounded once 32 bits.
    """
    layer, op = sums(view, 0), view.op
    shift = np.where(layer.multiplier == 0, -1, layer.shift.astype(np.int64))
    left = np.maximum(shift + op.rounds_once, 0)  # one rounding needs a right shift of 1 at least
    weights = (layer.weights - layer.weight_zero_point) << left[:, None]
    if np.abs(weights).max() > np.iinfo(np.int16).max:
        channel = int(np.argmax(np.abs(weights).max(1)))
        raise ValueError(f"channel {channel} has shift {int(shift[channel])}; its weights, shifted, do not fit 16 bits")
    if op.rounds_once and ((layer.range.size << left) > np.iinfo(np.int32).max).any():
        raise ValueError("the sums of a channel, shifted, do not fit 32 bits")
    right = left - shift
    limit = np.where(right > 0, 0, np.iinfo(np.int32).min)
    multiplier = layer.multiplier.astype(np.int64) << op.rounds_once
    mode = "once" if op.rounds_once else "relu" if op.act_min >= op.output_zero_point else "signed"
    params = np.stack([layer.bias << left, multiplier, limit]).astype(np.int32)
    return Arithmetic(np.concatenate([weights.T, right[None]]), params, mode)


@dataclass(frozen=True)
class Lines:
    """Vectors and lines of one layer, for registers of `vlen` bits."""

    view: LayerView
    vlen: int

    @property
    def lanes(self) -> int:
        """Sums in eight registers."""
        return self.vlen * 8 // 32

    @property
    def channels(self) -> int:
        """Channels of the output."""
        return int(self.view.op.out_channels)

    @property
    def is_few(self) -> bool:
        """Whether output channels share input channels."""
        return self.view.op.op == "conv2d" or self.view.op.depth_multiplier > 1

    @property
    def pixel(self) -> int:
        """Elements of a column of a line."""
        return int(self.view.inputs[0].shape[3])

    @property
    def inputs(self) -> int:
        """Input channels of a sum."""
        return self.pixel if self.view.op.op == "conv2d" else 1

    @property
    def taps(self) -> int:
        """Products of a sum."""
        return prod(self.view.op.kernel) * self.inputs

    @property
    def _out_width(self) -> int:
        return self.view.outputs[0].shape[2]

    @cached_property
    def pixels(self) -> int:
        """Output pixels of a vector."""
        most = max(self.lanes // self.channels, 1)
        return -(-self._out_width // -(-self._out_width // most))

    @property
    def groups(self) -> int:
        """Vectors that hold the channels, the last possibly incomplete."""
        return -(-self.channels // self.lanes)

    @property
    def span(self) -> int:
        """Rows of the image from the first to the last row of a window."""
        return int((self.view.op.kernel[0] - 1) * self.view.op.dilation[0] + 1)

    @cached_property
    def _phases(self) -> list[int]:
        """Phases of the columns that windows read; [0] if a line has all columns in order."""
        op = self.view.op
        if self.stride == 1:
            return [0]
        return sorted({kx * op.dilation[1] % op.stride[1] for kx in range(op.kernel[1])})

    @property
    def stride(self) -> int:
        """Columns of the image between neighbours in a line."""
        return int(self.view.op.stride[1]) if self.pixels > 1 and not self.is_few else 1

    @cached_property
    def _starts(self) -> list[int]:
        """Number of columns of a line before each phase, and of all."""
        op = self.view.op
        count = (self._out_width - 1) * op.stride[1] + (op.kernel[1] - 1) * op.dilation[1] + 1
        return list(accumulate((-(-(count - phase) // self.stride) for phase in self._phases), initial=0))

    @property
    def line(self) -> int:
        """Elements of a line."""
        return self._starts[-1] * self.pixel

    @cached_property
    def tap_columns(self) -> list[int]:
        """Byte offsets of the taps in a row of the first window."""
        columns = [kx * self.view.op.dilation[1] for kx in range(self.view.op.kernel[1])]
        places = [self._starts[self._phases.index(column % self.stride)] + column // self.stride for column in columns]
        return [(place * self.pixel + number) * _INT16 for place in places for number in range(self.inputs)]

    @cached_property
    def columns(self) -> list[int]:
        """Offsets of taps; then by phase its size and its first element in line and image row."""
        values, width = [*self.tap_columns], self.view.inputs[0].shape[2]
        for number, phase in enumerate(self._phases):
            before = max(-(-(self.view.op.padding[1] - phase) // self.stride), 0)  # columns of padding
            source = phase + before * self.stride - self.view.op.padding[1]
            count = self._starts[number + 1] - self._starts[number] - before
            count = min(count, -(-(width - source) // self.stride))
            values += [place * self.pixel for place in (self._starts[number] + before, source, count)]
        return values

    @property
    def x_step(self) -> int:
        """Bytes of a line from a vector to the next."""
        return int(self.pixels * self.view.op.stride[1] // self.stride * self.pixel * _INT16)

    @property
    def shape(self) -> str:
        """The part of the function's name for the window."""
        if self.is_few:
            return "few"
        steps = {b - a for a, b in zip(self.tap_columns, self.tap_columns[1:], strict=False)}
        if self.view.op.kernel != (3, 3):
            return "slide" if steps == {self.x_step} else "any"
        return "s1" if steps == {self.x_step} else "s2" if steps == {self.x_step // 2} else "3x3"

    def scratch_words(self, word_bits: int) -> int:
        """Words of 4 bytes: addresses of the taps, and lines."""
        rows = self.view.op.kernel[0]
        addresses = {"slide": rows, "few": rows, "any": self.taps}.get(self.shape, 0)
        return addresses * (word_bits // 32) + -(-self.span * self.line // 2)

    def by_groups(self, values: Array) -> Array:
        """Return [rows, channels] as [groups, rows, lanes], repeated for each pixel of a vector."""
        return self._grouped(np.tile(values, (1, self.pixels)))

    def weights(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int16]:
        """Return the weights as the code reads them; `values` are those of Arithmetic."""
        rows = np.tile(values, (1, self.pixels))
        rows = np.concatenate([rows, self.offsets()[None]]) if self.is_few else rows
        return self._grouped(rows).astype(np.int16)

    def _grouped(self, rows: Array) -> Array:
        padded = np.pad(rows, ((0, 0), (0, self.groups * self.lanes - rows.shape[1])))
        return np.ascontiguousarray(padded.reshape(len(rows), self.groups, self.lanes).transpose(1, 0, 2))

    def offsets(self) -> npt.NDArray[np.int64]:
        """Return bytes in a line from the first lane's input to each lane's, [pixels * channels]."""
        multiplier = self.channels if self.view.op.op == "conv2d" else self.view.op.depth_multiplier
        columns = np.arange(self.pixels)[:, None] * self.view.op.stride[1] * self.pixel
        offsets: npt.NDArray[np.int64] = (columns + np.arange(self.channels) // multiplier) * _INT16
        return offsets.reshape(-1)

    def chunks(self) -> dict[str, int]:
        """Return the fields of columns that are loaded by index; zeros if a row is copied as it is."""
        if self.stride == 1:
            return {"chunk": 0, "chunk_step": 0, "pixel_step": 0}
        chunk, step = self.vlen * 4 // 8 // self.channels, self.channels * self.stride  # four registers of bytes
        return {"chunk": chunk * self.channels, "chunk_step": chunk * step, "pixel_step": step}

    def cost(self) -> float:
        """Return the instructions of an image, from counts."""
        op, (_, out_height, out_width, _) = self.view.op, self.view.outputs[0].shape
        taps, rows = self.taps, op.kernel[0]
        pair, single = {
            "s1": (70, 49),
            "s2": (76, 46),
            "3x3": (85, 56),
            "slide": (26 + 6 * rows + 7 * taps, 20 + 3 * rows + 6 * taps),
            "any": (26 + 10 * taps, 20 + 8 * taps),
            "few": (30 + 5 * rows + 8 * taps, 23 + 5 * rows + 6 * taps),
        }[self.shape]
        pairs, rest = divmod(out_width // self.pixels, 2)
        group = 42 + pairs * pair + (rest + (out_width % self.pixels > 0)) * single
        stored = 9 * rows + 5 * taps * (self.shape == "any")
        vectors = -(-self.line * 2 // self.vlen)
        loaded = min(op.stride[0], self.span) * (len(self._phases) * 18 + 20 + 6 * vectors)
        filled = 6 * vectors * (self.span + op.padding[0] + op.padding[2])
        return out_height * (52 + self.groups * group + stored + loaded) + filled + 110


def lines_of(view: LayerView, vlen: int | None) -> Lines:
    """Return the vectors and lines of a layer on a core with vectors."""
    assert vlen is not None, "KernelFolder.needs"
    return Lines(view, vlen)


def fields(view: LayerView, lines: Lines) -> dict[str, int]:
    """Return the fields of rvv_depthwise."""
    op, (_, height, width, inputs) = view.op, view.inputs[0].shape
    _, out_height, out_width, channels = view.outputs[0].shape
    steps = [b - a for a, b in zip(lines.tap_columns, lines.tap_columns[1:], strict=False)]
    vector = lines.pixels * channels if lines.pixels > 1 else min(lines.lanes, channels)
    return {
        "lanes": lines.lanes,
        "vector": vector,
        "elements": vector if lines.pixels > 1 else channels,
        "vectors": out_width // lines.pixels,
        "tail": out_width % lines.pixels * channels,
        "y_step": lines.pixels * channels,
        "x_step": lines.x_step,
        "column1": steps[0] if steps else _INT16,
        "column2": steps[1] if len(steps) > 1 else 0,
        "group_x": (0 if lines.is_few else vector * _INT16) - out_width // lines.pixels * lines.x_step,
        "group_y": vector - out_width * channels,
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
        "taps": lines.taps,
        "kernel_height": op.kernel[0],
        "kernel_width": op.kernel[1] * lines.inputs,
        "height": height,
        "row": width * inputs,
        "top": op.padding[0],
        "out_height": out_height,
        "out_row": out_width * channels,
        "line": lines.line * _INT16,
        "line_step": lines.line * _INT16 * op.dilation[0],
        "ring": lines.line * _INT16 * lines.span,
        "span": lines.span,
        "loaded": min(op.stride[0], lines.span),
        "skipped": max(op.stride[0] - lines.span, 0),
        "fill": op.input_zero_point,
        "is_unsigned": int(view.inputs[0].dtype == "uint8"),
        "channels": channels,
        **lines.chunks(),
        "phases": (len(lines.columns) - len(lines.tap_columns)) // 3,
    }


def is_clipped(view: LayerView) -> bool:
    """Return whether the output bounds are narrower than int8."""
    return view.outputs[0].dtype != "int8" or (view.op.act_min, view.op.act_max) != (-128, 127)
