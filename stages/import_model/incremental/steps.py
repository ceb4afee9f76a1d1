"""Map rows of an operator's results to rows of its inputs, and write it for a range.

`Same` computes row i from row i of each input. `Sliding` moves a window along time: convolutions, pools, slices, PAD.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.import_model.incremental.rows import Range, Rows
from stages.import_model.incremental.writer import Writer
from stages.ir.arithmetic.sliding import extent, places, same_padding
from stages.ir.model_info import OperatorInfo

_SAME, _VALID = 0, 1  # the schema's Padding
_CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
RESHAPES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")


@dataclass(frozen=True)
class Same:
    """Operator whose result row i depends on row i of each input that has time.

    inputs   time axis of each input that has one, by position
    results  time axis of each result, in order
    """

    operator: OperatorInfo
    inputs: Mapping[int, Rows]
    results: tuple[Rows, ...]

    def reads(self, part: Range) -> dict[int, Range]:
        """Return the rows to read, by position of the input."""
        return dict.fromkeys(self.inputs, part)

    def can_write(self, part: Range) -> bool:
        """Return whether `write` can compute these rows."""
        return True

    def write(self, writer: Writer, part: Range, inputs: Mapping[int, int], suffix: str) -> list[int]:
        """Append the operator for some rows; return the results' tensors, named by `suffix`."""
        results = [
            writer.rows_like(index, rows, part[1] - part[0], suffix)
            for index, rows in zip(self.operator.outputs, self.results, strict=True)
        ]
        if self.operator.op in RESHAPES:
            writer.reshape(inputs[0], results[0])
        else:
            writer.copied(self.operator, inputs, results)
        return results


@dataclass(frozen=True)
class Window:
    """A sliding window along one axis.

    taps, stride, dilation  as in a convolution
    before                  rows of padding before the first row; below 0 if rows are skipped
    """

    taps: int
    stride: int
    dilation: int
    before: int

    def rows(self, source: Rows, axis: int, count: int) -> Rows:
        """Return the time axis of a result with `count` rows on `axis`."""
        begin, end = source.clean
        low = -(-(begin + self.before) // self.stride)
        high = (end - extent(self.taps, self.dilation) + self.before) // self.stride + 1
        low, high = min(max(low, 0), count), min(max(high, 0), count)
        return Rows(axis, 1, count, source.stride * self.stride, (low, max(low, high)))

    def reads(self, part: Range) -> Range:
        """Return the input rows of a range of results; some may be padding."""
        low = part[0] * self.stride - self.before
        return low, low + (part[1] - 1 - part[0]) * self.stride + extent(self.taps, self.dilation)


@dataclass(frozen=True)
class Sliding:
    """Operator whose result rows depend on a window of rows of input 0.

    other  window along the other spatial axis, and the size of this axis; None if the operator has no such window
    """

    operator: OperatorInfo
    source: Rows
    results: tuple[Rows, ...]
    window: Window
    other: tuple[Window, int] | None = None

    @property
    def inputs(self) -> dict[int, Rows]:
        """Time axis of input 0."""
        return {0: self.source}

    def reads(self, part: Range) -> dict[int, Range]:
        """Return the rows to read of input 0, without padding."""
        low, high = self.window.reads(self._with_rows(part))
        return {0: (max(low, 0), min(high, self.source.count))}

    def _with_rows(self, part: Range) -> Range:
        """Return `part`, extended to at least one row that is not padding."""
        before = self.window.before
        if self.operator.op in ("PAD", "PADV2"):
            return min(part[0], before + self.source.count - 1), max(part[1], before + 1)
        return part

    def can_write(self, part: Range) -> bool:
        """Return whether `write` can compute these rows: PAD cannot pad a pool."""
        return self.operator.op in (*_CONVOLUTIONS, "PAD", "PADV2") or self._padding(part) is not None

    def write(self, writer: Writer, part: Range, inputs: Mapping[int, int], suffix: str) -> list[int]:
        """Append the operator for some rows; return the results' tensor, named by `suffix`."""
        wanted, part = part, self._with_rows(part)
        (low, high), (rows,) = self.window.reads(part), self.results
        result = writer.rows_like(self.operator.outputs[0], rows, part[1] - part[0], suffix)
        pads = max(0, -low), max(0, high - self.source.count)
        axis, op = self.source.axis, self.operator.op
        if op in ("PAD", "PADV2"):
            amounts = writer.value(self.operator.inputs[1]).copy()
            amounts[axis] = pads
            writer.copied(self.operator, {**inputs, 1: writer.constant("pads", amounts)}, [result])
        elif op == "SLICE":
            writer.slice(inputs[0], result, self._slice_bounds(writer, part))
        elif op == "STRIDED_SLICE":
            begin, end, strides = (writer.value(index).copy() for index in self.operator.inputs[1:4])
            begin[axis], end[axis] = 0, self.reads(part)[0][1] - self.reads(part)[0][0]
            limits = {1: writer.constant("begin", begin), 2: writer.constant("end", end)}
            writer.copied(self.operator, {**inputs, **limits, 3: writer.constant("strides", strides)}, [result])
        else:
            self._slide(writer, part, pads, inputs, result)
        return [writer.part_of(result, rows, part, wanted)]

    def _slice_bounds(self, writer: Writer, part: Range) -> list[Range]:
        """Return begin and end on each axis of the rows that were read."""
        begin, shape = writer.value(self.operator.inputs[1]), writer.info.tensors[self.operator.outputs[0]].shape
        bounds = [(int(low), int(low) + size) for low, size in zip(begin, shape, strict=True)]
        bounds[self.source.axis] = 0, part[1] - part[0]
        return bounds

    def _padding(self, part: Range) -> int | None:
        """Return the schema's padding for these rows; None if a PAD is needed."""
        (low, high), window = self.window.reads(part), self.window
        pads, count = (max(0, -low), max(0, high - self.source.count)), part[1] - part[0]
        if self.other is None:
            return _VALID
        wide, size = self.other
        sides = same_padding(size, wide.taps, wide.stride, wide.dilation)
        is_same = self.operator.options is not None and self.operator.options.fields["padding"] == _SAME
        if not is_same or not any((*pads, *sides)):
            return _VALID
        rows = high - low - sum(pads)
        if places(rows, window.taps, window.stride, window.dilation, same=True) != count:
            return None
        return _SAME if same_padding(rows, window.taps, window.stride, window.dilation) == pads else None

    def _slide(self, writer: Writer, part: Range, pads: Range, inputs: Mapping[int, int], result: int) -> None:
        """Append a convolution or pool, with a PAD if neither SAME nor VALID fits."""
        padding = self._padding(part)
        if padding is None:
            assert self.other is not None
            wide, size = self.other
            amounts = np.zeros((4, 2), np.int32)
            amounts[self.source.axis] = pads
            amounts[3 - self.source.axis] = same_padding(size, wide.taps, wide.stride, wide.dilation)
            inputs = {**inputs, 0: writer.pad(inputs[0], amounts)}
        writer.copied(self.operator, inputs, [result], padding=_VALID if padding is None else padding)


Step = Same | Sliding


def fields(operator: OperatorInfo) -> Mapping[str, Any]:
    """Return the options of an operator; {} if the file has none."""
    return operator.options.fields if operator.options is not None else {}
