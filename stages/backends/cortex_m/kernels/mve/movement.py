"""Data movement in rows: pad, slices, split, transpose, changes of layout, concatenation."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.cortex_m.kernels.mve.copy_candidates import CopyCandidate, best
from stages.backends.kernels.copies import (
    BLOCKS,
    RESHAPES,
    SLICES,
    Copy,
    copy_of,
    is_permuted,
    relayouts,
    why_not_relayouts,
)
from stages.backends.kernels.fills import Fill, fills
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.layers.tensor import ITEM_BYTES
from stages.ir.operators import movement
from stages.support.lazy import np

KINDS = (*SLICES, *RESHAPES, *BLOCKS, "pad", "transpose", "layout")
FILL_RUN, FILL_BYTE = 7.0, 0.125  # instructions of a run of bytes, and of a byte


class _Rows(Kernel):
    """Copies between strided views, each by its cheapest candidate."""

    sources = ("copies.S",)

    @abstractmethod
    def copies(self, view: LayerView) -> list[Copy]:
        """Return the copies of the layer."""

    @abstractmethod
    def why_not_copies(self, view: LayerView) -> str:
        """Return why the layer is not a set of strided copies, '' if it is."""

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := self.why_not_copies(view):
            return bad
        element = ITEM_BYTES[view.outputs[0].dtype]
        runs = (copy.axes[-1] for copy in self.copies(view) if best(copy, element) is None)
        return next((f"a stride of {run.strides[1]} elements of {element} bytes is not supported" for run in runs), "")

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        tables = (
            (f"offsets{number}", candidate)
            for number, (_, candidate) in enumerate(self.selected(view))
            if candidate.kind == "gather"
        )
        return {name: np.array(candidate.offsets, np.uint8) for name, candidate in tables}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.cortex_m.kernels.mve.movement_tir import copies

        return copies(view, self.selected(view), self.fills(view))

    def selected(self, view: LayerView) -> list[tuple[Copy, CopyCandidate]]:
        """Return the selected candidate of each copy."""
        candidates = ((copy, best(copy, ITEM_BYTES[view.outputs[0].dtype])) for copy in self.copies(view))
        return [(copy, candidate) for copy, candidate in candidates if candidate is not None]

    def fills(self, view: LayerView) -> list[Fill]:
        """Return the regions that a pad fills around its copy."""
        is_pad = isinstance(view.op, movement.Move) and view.op.kind == "pad"
        padded = self.copies(view) if is_pad else []
        return [fill for copy in padded for fill in fills(copy, view.outputs[0].elements, FILL_RUN, FILL_BYTE)]

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts."""
        element = ITEM_BYTES[view.outputs[0].dtype]
        filled = sum(fill.runs * (FILL_RUN + FILL_BYTE * fill.extent) for fill in self.fills(view))
        return filled + sum(candidate.cost(element) for _, candidate in self.selected(view))


class Move(_Rows):
    """Slices, transposes and similar layers as one copy; a pad fills its output first."""

    name = "mve.move"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"move"})

    def why_not_layouts(self, view: LayerView) -> str:
        """Return '': tensors may change between any layouts."""
        return "" if view.op.kind == "layout" else super().why_not_layouts(view)

    def why_not_copies(self, view: LayerView) -> str:
        x, y, kind = view.inputs[0], view.outputs[0], view.op.kind
        if kind not in KINDS:
            return f"{kind!r} is not supported"
        if x.dtype != y.dtype:
            return f"{x.dtype} to {y.dtype} is not supported"
        if kind == "pad" and ITEM_BYTES[y.dtype] != 1:
            return f"elements of {ITEM_BYTES[y.dtype]} bytes cannot be filled bytewise"
        if kind in RESHAPES and is_permuted(x) and is_permuted(y) and x.shape != y.shape:
            return "a reshape from NCHW to NCHW is not a strided copy"
        return why_not_relayouts(x, y) if kind == "layout" else ""

    def copies(self, view: LayerView) -> list[Copy]:
        return relayouts(view.inputs[0], view.outputs[0]) if view.op.kind == "layout" else [copy_of(view)]
