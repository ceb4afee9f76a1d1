"""Data movement.

PAD, slices, TRANSPOSE, layout transforms, resize to the nearest pixel, CONCATENATION, states.
"""

from math import prod
from typing import Any, ClassVar

from stages.backends.kernels.copies import Copy
from stages.backends.kernels.copy_calls import calls_of, resized
from stages.backends.kernels.word_copies import (
    RESIZE,
    WordConcatenation,
    WordCopies,
    WordMove,
    WordSlide,
    WordVariable,
)
from stages.backends.riscv.kernels.rvv.turns import turns
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.ir.layers.tensor import ITEM_BYTES

_LAYER, _CALL = 25.0, 15.0
_GATHERED = 8  # bytes of a pixel, up to which a resize gathers bytes


class _Vectors(WordCopies):
    """Base of the kernels that copy data with functions of copies.S."""

    row_alignment = 1
    estimate_error = 1.25
    sources = ("copies.S",)
    prefix: ClassVar[str] = "rvv"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts."""
        item_bytes = ITEM_BYTES[view.outputs[0].dtype]
        filled = (
            prod(axis.extent for axis in fill.axes[:-1])
            * _rows_cost(fill.axes[-1].extent, fill.extent * item_bytes, target, 5.0)
            for fill in self.fills(view)
        )
        return _LAYER + sum(filled) + sum(self._copy_cost(copy, view, target) for copy in self.copies(view))

    def _copy_cost(self, copy: Copy, view: LayerView, target: Target) -> float:
        calls = calls_of(copy)
        rows, columns = calls.rows.extent, calls.columns.extent
        if calls.is_run:
            times = _rows_cost(rows, columns * ITEM_BYTES[view.outputs[0].dtype], target, 7.0)
        else:
            times = _CALL + min(rows, columns) * (9.0 * turns(target, max(rows, columns)) + 2)
        return prod(axis.extent for axis in calls.outer) * times


def _rows_cost(rows: int, size: int, target: Target, turn: float) -> float:
    """Return instructions for runs of `size` bytes: `turn` + 7 each, or 10 for each byte."""
    if size < rows:
        return _CALL + size * (10.0 * turns(target, rows) + 2)
    return _CALL + rows * (turn * turns(target, size) + 7)


class Move(_Vectors, WordMove):
    """Slices and transposes as one copy, pads as fills and a copy, resizes as copies of pixels."""

    name = "rvv.move"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        if view.op.kind != RESIZE:
            return super().cost(view, params, target)
        images, height, width, pixel = resized(view)
        if pixel > _GATHERED:
            return images * height * (12 + width * (7.0 * turns(target, pixel) + 7))
        return images * height * (12 + turns(target, width, 4) * (14 + 6.0 * pixel))


class Concatenation(_Vectors, WordConcatenation):
    """Concatenation as one copy per input."""

    name = "rvv.concatenation"


class Slide(_Vectors, WordSlide):
    """Rows of a window moved within its state."""

    name = "rvv.slide"


class Variable(_Vectors, WordVariable):
    """A whole state, read or written."""

    name = "rvv.variable"
