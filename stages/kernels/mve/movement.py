"""Data movement in rows: pad, slices, split, transpose, changes of layout, concatenation."""

from __future__ import annotations

from abc import abstractmethod
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.graph.tensor import ITEM_BYTES
from stages.kernels.generic.copies import (
    RESHAPES,
    SLICES,
    Copy,
    copy_of,
    is_permuted,
    parts,
    relayouts,
    why_not_relayouts,
)
from stages.kernels.kernel import Kernel
from stages.kernels.mve.fills import Fill, fills

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target

KINDS = (*SLICES, *RESHAPES, "pad", "transpose", "layout")
FILL_RUN, FILL_BYTE = 7.0, 0.125  # instructions of a run of bytes, and of a byte
MOST_STRIDE = 8191  # of bytes that are picked: offsets of eight have 16 bits


class _Rows(Kernel):
    """Copies between strided views whose innermost axis is a run of bytes, or of bytes a stride apart."""

    sources = ("copies.S",)
    headers: ClassVar[tuple[str, ...]] = ("copies.h",)

    @abstractmethod
    def copies(self, view: LayerView) -> list[Copy]:
        """What the layer does."""

    @abstractmethod
    def why_not_copies(self, view: LayerView) -> str:
        """Why the layer is no copies between strided views, '' if it is."""

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return self.why_not_copies(view) or next(filter(None, map(_why_not(view), self.copies(view))), "")

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.mve.movement_tir import copies

        return copies(view, self.copies(view), self.fills(view))

    def fills(self, view: LayerView) -> list[Fill]:
        """What a pad fills around its copy."""
        is_pad = view.op.op == "move" and view.op.kind == "pad"
        padded = self.copies(view) if is_pad else []
        return [fill for copy in padded for fill in fills(copy, view.outputs[0].elements, FILL_RUN, FILL_BYTE)]

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """As counted."""
        y = view.outputs[0]
        filled = sum(fill.runs * (FILL_RUN + FILL_BYTE * fill.extent) for fill in self.fills(view))
        return filled + sum(_cost(copy, ITEM_BYTES[y.dtype]) for copy in self.copies(view))


class Move(_Rows):
    """Slices, transposes and the like are one copy. A pad fills its output before."""

    name = "mve.move"
    ops: ClassVar[frozenset[str]] = frozenset({"move"})

    def why_not_layouts(self, view: LayerView) -> str:
        """Tensors change from any layout to any other."""
        return "" if view.op.kind == "layout" else super().why_not_layouts(view)

    def why_not_copies(self, view: LayerView) -> str:
        x, y, kind = view.inputs[0], view.outputs[0], view.op.kind
        if kind not in KINDS:
            return f"no rows of bytes are moved as {kind!r}"
        if x.dtype != y.dtype:
            return f"{x.dtype} to {y.dtype}"
        if kind == "pad" and ITEM_BYTES[y.dtype] != 1:
            return f"elements of {ITEM_BYTES[y.dtype]} bytes are not filled by bytes"
        if kind in RESHAPES and is_permuted(x) and is_permuted(y) and x.shape != y.shape:
            return "a reshape from NCHW to NCHW reorders elements in a way that has no strides"
        return why_not_relayouts(x, y) if kind == "layout" else ""

    def copies(self, view: LayerView) -> list[Copy]:
        return relayouts(view.inputs[0], view.outputs[0]) if view.op.kind == "layout" else [copy_of(view)]


class Concatenation(_Rows):
    """One copy for each input."""

    name = "mve.concatenation"
    ops: ClassVar[frozenset[str]] = frozenset({"concatenation"})

    def why_not_copies(self, view: LayerView) -> str:
        types = sorted({tensor.dtype for tensor in (*view.inputs, *view.outputs)})
        return "" if len(types) == 1 else f"{' and '.join(types)} in one concatenation"

    def copies(self, view: LayerView) -> list[Copy]:
        return parts(view)


def _why_not(view: LayerView) -> Any:
    """What says why a copy is not by rows, '' if it is."""
    item_bytes = ITEM_BYTES[view.outputs[0].dtype]

    def why(copy: Copy) -> str:
        run = copy.axes[-1]
        if run.extent == 1 or run.strides == (1, 1):
            return ""
        if item_bytes != 1:
            return f"elements of {item_bytes} bytes that are no neighbours"
        if run.strides[0] != 1 or not 0 < run.strides[1] <= MOST_STRIDE:
            return f"steps of {run.strides[1]} to {run.strides[0]} bytes"
        return ""

    return why


def _cost(copy: Copy, item_bytes: int) -> float:
    run = copy.axes[-1]
    rows = copy.axes[-2].extent if len(copy.axes) > 1 else 1
    calls = prod(axis.extent for axis in copy.axes[:-2])
    size = run.extent * item_bytes
    copied = 6.0 if size <= 16 else 8.0 + 3 * -(-size // 16)
    row = copied if run.strides == (1, 1) else 8.0 + 4 * -(-size // 8)
    return calls * (rows * row + 25)
