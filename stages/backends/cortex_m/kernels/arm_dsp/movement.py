"""Data movement in rows of bytes: pad, slices, split, layout, concatenation.

Other kernels move single bytes that are not adjacent.
"""

from math import gcd, prod
from typing import Any, ClassVar

from stages.backends.kernels.copies import Copy
from stages.backends.kernels.copy_calls import calls_of
from stages.backends.kernels.word_copies import RESIZE, WordConcatenation, WordCopies, WordMove, WordSlide, WordVariable
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.ir.layers.tensor import ITEM_BYTES

LAYER, CALL = 30.0, 24.0  # instructions around a layer, and around each call for rows


class _Rows(WordCopies):
    """Copies of neighbouring bytes, 32 at a time."""

    sources = ("copies.S",)
    prefix: ClassVar[str] = "arm_dsp"

    def why_not_copies(self, view: LayerView) -> str:
        return "" if all(calls_of(copy).is_run for copy in self.copies(view)) else "elements are not neighbours"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts."""
        item_bytes = ITEM_BYTES[view.outputs[0].dtype]
        filled = sum(CALL + fill.runs * _filled(fill.extent * item_bytes) for fill in self.fills(view))
        return LAYER + filled + sum(_copied(copy, item_bytes) for copy in self.copies(view))


class Move(_Rows, WordMove):
    """Slices and similar layers as one copy, pads as a fill and a copy."""

    name = "arm_dsp.move"
    row_alignment = 1
    estimate_error = 1.25

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return "a resize copies single pixels" if view.op.kind == RESIZE else super().why_not_layer(view, target)


class Concatenation(_Rows, WordConcatenation):
    """Concatenation as one copy per input."""

    name = "arm_dsp.concatenation"
    row_alignment = 1
    estimate_error = 1.5


class Slide(_Rows, WordSlide):
    """Move of a window's rows within its state."""

    name = "arm_dsp.slide"
    row_alignment = 1
    estimate_error = 1.5


class Variable(_Rows, WordVariable):
    """Copy of a complete state."""

    name = "arm_dsp.variable"
    row_alignment = 1
    estimate_error = 1.5


def _copied(copy: Copy, item_bytes: int) -> float:
    calls = calls_of(copy)
    size = calls.columns.extent * item_bytes
    axes = (calls.rows, *calls.outer) if calls.rows.extent > 1 else calls.outer
    into, out_of = (
        gcd(start, *(axis.strides[n] for axis in axes)) * item_bytes
        for n, start in enumerate((copy.target_offset, copy.source_offset))
    )
    whole, rest = divmod(size, 32)
    left = (rest & 16) // 16 + (rest & 8) // 8, (rest & 4) // 4 + (rest & 2) // 2 + rest % 2
    if into % 4 == 0 and out_of % 4 == 0:
        row = 10 + 4 * whole + 2 * left[0] + (7 + 2 * left[1] if rest % 16 else 0)
    else:
        row = 15 + 12 * whole + 8 * (rest & 16) // 16 + 4 * (rest & 8) // 8 + (7 + 2 * left[1] if rest % 16 else 0)
        row += 0 if out_of % 4 == 0 or into % 4 == 0 or size < 32 else 8
    return prod(axis.extent for axis in calls.outer) * (CALL + calls.rows.extent * row)


def _filled(size: int) -> float:
    """Return the instructions of a run of the padding value."""
    whole, rest = divmod(size, 32)
    return 14 + (5 if size >= 16 else 0) + 3 * whole + 4 * (rest % 16 > 0)
