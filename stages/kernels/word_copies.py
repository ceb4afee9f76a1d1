"""Data movement by words of any alignment: pad, slices, split, transpose, layout, resize, concatenation.

For cores that trap on a word that is not aligned, whose C library copies byte by byte.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.graph.tensor import ITEM_BYTES
from stages.kernels.fills import Fill, fills
from stages.kernels.generic.copies import (
    RESHAPES,
    SLICES,
    copy_of,
    is_permuted,
    parts,
    relayouts,
    why_not_relayouts,
)
from stages.kernels.kernel import Kernel
from stages.kernels.tir.strides import Axis

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.generic.copies import Copy
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target

FILL_RUN, FILL_BYTE = 20.0, 0.3  # instructions of a run of bytes, and of a byte
RESIZE = "resize_nearest_neighbor"
KINDS = (*SLICES, *RESHAPES, "pad", "transpose", "layout", RESIZE)


@dataclass(frozen=True)
class Calls:
    """A copy as calls of one function over rows and, within them, columns; axes have (output, input) strides.

    is_run  columns are neighbours in the output and in the input; otherwise they are bytes that are apart
    """

    outer: tuple[Axis, ...]
    rows: Axis
    columns: Axis
    is_run: bool


def calls_of(copy: Copy) -> Calls:
    """Runs, in rows along the longest other axis; or neighbours in the output by neighbours in the input."""
    others, last = copy.axes[:-1], copy.axes[-1]
    is_run = last.strides == (1, 1) or last.extent == 1
    order = sorted(others, key=lambda axis: axis.extent if is_run else axis.strides[1] == 1)
    other = order[-1] if order else Axis(1, (last.extent, last.extent) if is_run else (0, 1))
    outer = tuple(axis for axis in others if axis is not other)
    return Calls(outer, other, last, is_run=True) if is_run else Calls(outer, last, other, is_run=False)


class WordCopies(Kernel):
    """Runs of bytes by words, single bytes by blocks of four rows: whatever their alignment.

    prefix      of its C functions
    block_byte  instructions for a byte of blocks with registers of 64 bits
    """

    sources = ("copies.c",)
    headers: ClassVar[tuple[str, ...]] = ("copies.h",)
    prefix: ClassVar[str]
    block_byte: ClassVar[float]

    @abstractmethod
    def copies(self, view: LayerView) -> list[Copy]:
        """What the layer does; nothing for a resize."""

    def why_not_copies(self, view: LayerView) -> str:
        """Why its functions do not copy so, '' if they do."""
        item_bytes = ITEM_BYTES[view.outputs[0].dtype]
        if item_bytes != 1 and not all(calls_of(copy).is_run for copy in self.copies(view)):
            return f"elements of {item_bytes} bytes that are no neighbours"
        return ""

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.tir.word_copies import copies

        return copies(view, self.copies(view), self.fills(view), self.prefix)

    def fills(self, view: LayerView) -> list[Fill]:
        """What a pad fills around its copy."""
        return []

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """As counted."""
        filled = sum(fill.runs * (FILL_RUN + FILL_BYTE * fill.extent) for fill in self.fills(view))
        return filled + sum(self._copy_cost(copy, view, target) for copy in self.copies(view))

    def _copy_cost(self, copy: Copy, view: LayerView, target: Target) -> float:
        """For a byte of a run 0.75 where words are merged, of aligned ones 0.35; 40 and 8 for a row; of others 2.6."""
        calls, register = calls_of(copy), target.word_bits // 8
        item_bytes = ITEM_BYTES[view.outputs[0].dtype]
        steps = [copy.target_offset, copy.source_offset, *(n for axis in calls.outer for n in axis.strides)]
        rows, columns = calls.rows, calls.columns
        times = 50.0 + rows.extent * columns.extent
        if calls.is_run:
            size = columns.extent * item_bytes
            aligned = all(step * item_bytes % 4 == 0 for step in (*steps, *rows.strides, columns.extent))
            row = 8 + 2.8 * size / register if aligned else min(40 + 6.0 * size / register, 6 + 2.8 * size)
            times = 40 + rows.extent * row
        else:
            transposed = rows.strides[0] == columns.strides[1] == 1 and min(rows.extent, columns.extent) >= 4
            aligned = transposed and all(n % 4 == 0 for n in (*steps, rows.strides[1], columns.strides[0]))
            byte = self.block_byte * 8 / register if aligned else 2.6 if transposed else 4.5
            times = 50 + byte * rows.extent * columns.extent
        return prod(axis.extent for axis in calls.outer) * times


class WordMove(WordCopies):
    """Slices, transposes and the like are one copy; a pad fills what is around it; a resize copies pixels, or rows."""

    ops: ClassVar[frozenset[str]] = frozenset({"move"})

    def why_not_layouts(self, view: LayerView) -> str:
        """Tensors change from any layout to any other."""
        return "" if view.op.kind == "layout" else super().why_not_layouts(view)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return _why_not_moved(view) or self.why_not_copies(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        tables = ("rows", "columns") if view.op.kind == RESIZE else ()
        return {key: np.array(view.op.params[key], np.int32) for key in tables}

    def copies(self, view: LayerView) -> list[Copy]:
        if view.op.kind == RESIZE:
            return []
        return relayouts(view.inputs[0], view.outputs[0]) if view.op.kind == "layout" else [copy_of(view)]

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        if view.op.kind != RESIZE:
            return super().lower(view, params, target)
        from stages.kernels.tir.word_copies import resize

        return resize(view, self.prefix)

    def fills(self, view: LayerView) -> list[Fill]:
        if view.op.kind != "pad":
            return []
        item_bytes = ITEM_BYTES[view.outputs[0].dtype]
        (copy,) = self.copies(view)
        return fills(copy, view.outputs[0].elements, FILL_RUN, FILL_BYTE * item_bytes)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        if view.op.kind != RESIZE:
            return super().cost(view, params, target)
        images, height, width, pixel = resized(view)
        distinct = len(set(view.op.params["rows"]))
        words = pixel * 8 / target.word_bits
        return images * (distinct * width * (12 + 2.8 * words) + (height - distinct) * (40 + 6 * width * words))


class WordConcatenation(WordCopies):
    """One copy for each input."""

    ops: ClassVar[frozenset[str]] = frozenset({"concatenation"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        types = sorted({tensor.dtype for tensor in (*view.inputs, *view.outputs)})
        return f"{' and '.join(types)} in one concatenation" if len(types) > 1 else self.why_not_copies(view)

    def copies(self, view: LayerView) -> list[Copy]:
        return parts(view)


def resized(view: LayerView) -> tuple[int, int, int, int]:
    """Of a resize: how many images, their height and width, bytes of a pixel. A plane is an image."""
    y = view.outputs[0]
    batch, height, width, channels = y.shape
    item_bytes = ITEM_BYTES[y.dtype]
    if y.layout == "NCHW":
        return batch * channels, height, width, item_bytes
    return batch, height, width, channels * item_bytes


def _why_not_moved(view: LayerView) -> str:
    x, y, kind = view.inputs[0], view.outputs[0], view.op.kind
    if kind not in KINDS:
        return f"no rows of bytes are moved as {kind!r}"
    if x.dtype != y.dtype:
        return f"{x.dtype} to {y.dtype}"
    if kind == RESIZE and (x.layout or "NHWC") != (y.layout or "NHWC"):
        return f"images change from {x.layout} to {y.layout}"
    if kind == "pad" and ITEM_BYTES[y.dtype] != 1 and view.op.params["value"] != 0:
        return f"elements of {ITEM_BYTES[y.dtype]} bytes are filled by bytes, which are 0"
    if kind in RESHAPES and is_permuted(x) and is_permuted(y) and x.shape != y.shape:
        return "a reshape from NCHW to NCHW reorders elements in a way that has no strides"
    return why_not_relayouts(x, y) if kind == "layout" else ""
