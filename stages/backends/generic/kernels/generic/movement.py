"""Data movement: pad, slice, split, transpose, layout, resize, concatenation.

Any element type.
Each is a few copies between strided views, except the resize, which reads its source indices from tables.
"""

from abc import abstractmethod
from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar, Literal

from stages.backends.generic.kernels.generic.costs import costs_of
from stages.backends.kernels.copies import (
    BLOCKS,
    RESHAPES,
    RUN_BYTES,
    SLICES,
    Copy,
    copy_of,
    is_permuted,
    parts,
    relayouts,
    slide_of,
    why_not_ascending,
    why_not_relayouts,
)
from stages.backends.kernels.kernel import Kernel, KernelParams, Lowering
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.layers.tensor import ITEM_BYTES
from stages.support.lazy import np

KINDS = (*SLICES, *RESHAPES, *BLOCKS, "pad", "transpose", "layout", "resize_nearest_neighbor")


class CopyParams(KernelParams):
    """Copy runs by the C library's memcpy, or by aligned words of the target."""

    by: Literal["memcpy", "words"] = "memcpy"


class _Copying(Kernel):
    """Rows of words, or runs of bytes; single elements are loops that TVM prints."""

    sources = ("copy.c",)
    params = CopyParams

    @abstractmethod
    def copies(self, view: LayerView) -> list[Copy]:
        """Return the copies of the layer, none if it is not a copy between strided views."""

    def candidates(self, view: LayerView, target: Target) -> tuple[CopyParams, ...]:
        item_bytes = ITEM_BYTES[view.outputs[0].dtype]
        by_words = any(copy.word_bytes(item_bytes, target) for copy in self.copies(view))
        return (self.params(), self.params(by="words")) if by_words else (self.params(),)

    def cost(self, view: LayerView, params: CopyParams, target: Target) -> float:
        item_bytes = ITEM_BYTES[view.outputs[0].dtype]
        return 20 + sum(_copy_cost(copy, item_bytes, params, target) for copy in self.copies(view))


class Move(_Copying):
    """Slice, transpose, pad and resize.

    Slices and transposes are one copy. A resize reads source indices from tables. A pad fills its output first.
    """

    name = "generic.move"
    row_alignment = 8
    estimate_error = 8
    ops: ClassVar[frozenset[str]] = frozenset({"move"})

    def why_not_layouts(self, view: LayerView) -> str:
        """Return '': tensors change from any layout to any other."""
        return "" if view.op.kind == "layout" else super().why_not_layouts(view)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        x, y = view.inputs[0], view.outputs[0]
        if view.op.kind not in KINDS:
            return f"data movement {view.op.kind!r}; this kernel does not support it"
        if x.dtype != y.dtype:
            return f"{x.dtype} to {y.dtype}"
        if view.op.kind == "layout":
            return why_not_relayouts(x, y)
        if view.op.kind in RESHAPES and is_permuted(x) and is_permuted(y) and x.shape != y.shape:
            return "a reshape from NCHW to NCHW, which strides cannot express"
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        if view.op.kind != "resize_nearest_neighbor":
            return {}
        return {key: np.array(view.op.params[key], np.int32) for key in ("rows", "columns")}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic import movement_tir

        if view.op.kind == "resize_nearest_neighbor":
            return movement_tir.resize(view)
        fill = view.op.params["value"] if view.op.kind == "pad" else None
        return movement_tir.copies(view, self.copies(view), fill, params, target)

    def copies(self, view: LayerView) -> list[Copy]:
        if view.op.kind == "resize_nearest_neighbor":
            return []
        return relayouts(view.inputs[0], view.outputs[0]) if view.op.kind == "layout" else [copy_of(view)]

    def cost(self, view: LayerView, params: CopyParams, target: Target) -> float:
        y = view.outputs[0]
        if view.op.kind == "resize_nearest_neighbor":
            return 8.0 * y.elements
        return super().cost(view, params, target) + (y.bytes if view.op.kind == "pad" else 0)


class Concatenation(_Copying):
    """One copy per input."""

    name = "generic.concatenation"
    row_alignment = 8
    estimate_error = 6
    ops: ClassVar[frozenset[str]] = frozenset({"concatenation"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        types = sorted({tensor.dtype for tensor in (*view.inputs, *view.outputs)})
        return "" if len(types) == 1 else f"{' and '.join(types)} in one concatenation"

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic import movement_tir

        return movement_tir.copies(view, self.copies(view), None, params, target)

    def copies(self, view: LayerView) -> list[Copy]:
        return parts(view)


class Slide(_Copying):
    """Move of a window's rows within its state, by memmove or by words."""

    name = "generic.slide"
    row_alignment = 8
    estimate_error = 6
    ops: ClassVar[frozenset[str]] = frozenset({"slide"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return ""

    def candidates(self, view: LayerView, target: Target) -> tuple[CopyParams, ...]:
        return (self.params(),) if why_not_ascending(view) else super().candidates(view, target)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic import movement_tir

        params = self.params() if why_not_ascending(view) else params
        return movement_tir.copies(view, self.copies(view), None, params, target)

    def copies(self, view: LayerView) -> list[Copy]:
        return [slide_of(view)]


class Variable(Kernel):
    """Copy by one memcpy. State has the layout of the file."""

    name = "generic.variable"
    ops: ClassVar[frozenset[str]] = frozenset({"read_variable", "assign_variable"})
    sources = ("copy.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        x, y = view.inputs[0], view.outputs[0]
        return "" if x.lies_as(y.layout) else f"input in {x.layout}, output in {y.layout}"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 20 instructions per call and 0.5 per byte, or 5 per element for few elements."""
        y = view.outputs[0]
        return 20 + 0.5 * y.bytes if y.bytes >= RUN_BYTES else 5.0 * y.elements

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.movement_tir import whole

        return whole(view)


def _copy_cost(copy: Copy, item_bytes: int, params: CopyParams, target: Target) -> float:
    """Return the instructions of a copy: by words, by memcpy, or by a loop (innermost axis)."""
    run = copy.axes[-1]
    rows, row_bytes = prod(axis.extent for axis in copy.axes[:-1]), run.extent * item_bytes
    word = copy.word_bytes(item_bytes, target)
    if params.by == "words" and word:
        return float(rows * (13 + 4 * row_bytes // word))
    if copy.is_run(item_bytes):
        return rows * (15 + costs_of(target).copied_byte * row_bytes)
    return 5.0 * rows * run.extent


KERNELS: tuple[type[Kernel], ...] = (Concatenation, Move, Slide, Variable)
