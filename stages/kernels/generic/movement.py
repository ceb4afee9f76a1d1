"""Data movement: pad, slices, split, transpose, layout, resize, concatenation. Any type of element.

Every one of them is a few copies between strided views, but for the resize, which takes its sources from tables.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from stages.graph.tensor import ITEM_BYTES, place
from stages.kernels.generic.base import GenericKernel
from stages.kernels.kernel import KernelParams, Lowering
from stages.kernels.tir.strides import Axis, logical_strides, row_major, walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView, Tensor
    from stages.targets.spec import Target

SLICES = ("slice", "strided_slice", "split")
_RESHAPES = ("reshape", "squeeze")
KINDS = (*SLICES, *_RESHAPES, "pad", "transpose", "layout", "resize_nearest_neighbor")

RUN_BYTES = 16
"""A run of at least so many bytes is left to memcpy."""


class CopyParams(KernelParams):
    """How runs are copied: by the C library's memcpy, or by words of the target where all lies at multiples of them."""

    by: Literal["memcpy", "words"] = "memcpy"


@dataclass(frozen=True)
class Copy:
    """Input `source` to the output: where both start, in elements, and axes with (output, input) strides."""

    source: int
    target_offset: int
    source_offset: int
    axes: tuple[Axis, ...]

    def is_run(self, item_bytes: int) -> bool:
        """Whether the innermost axis is worth a call of memcpy."""
        run = self.axes[-1]
        return run.strides == (1, 1) and run.extent * item_bytes >= RUN_BYTES

    def word_bytes(self, item_bytes: int, target: Target) -> int:
        """Bytes of the largest word by which the innermost axis can be copied, 0 if by none."""
        run = self.axes[-1]
        strides = [stride for axis in self.axes[:-1] for stride in axis.strides]
        if run.strides != (1, 1) or any(stride < 0 for stride in strides):
            return 0
        steps = [run.extent, self.target_offset, self.source_offset, *strides]
        return next((n for n in (target.word_bits // 8, 4) if all(step * item_bytes % n == 0 for step in steps)), 0)


class _Copying(GenericKernel):
    """Rows of words or runs of bytes where they are, loops that TVM prints for single elements."""

    headers: ClassVar[tuple[str, ...]] = ("generic.h", "copy.h")
    sources = ("copy.c",)
    params = CopyParams

    @abstractmethod
    def copies(self, view: LayerView) -> list[Copy]:
        """What the layer does; nothing for a layer that is no copy between strided views."""

    def candidates(self, view: LayerView, target: Target) -> tuple[CopyParams, ...]:
        item_bytes = ITEM_BYTES[view.outputs[0].dtype]
        by_words = any(copy.word_bytes(item_bytes, target) for copy in self.copies(view))
        return (self.params(), self.params(by="words")) if by_words else (self.params(),)

    def cost(self, view: LayerView, params: CopyParams, target: Target) -> float:
        item_bytes = ITEM_BYTES[view.outputs[0].dtype]
        return sum(_copy_cost(copy, item_bytes, params, target) for copy in self.copies(view))


class Move(_Copying):
    """Slices, transposes and the like are one copy, resizing takes its sources from tables. A pad fills its output."""

    name = "generic.move"
    ops: ClassVar[frozenset[str]] = frozenset({"move"})

    def why_not(self, view: LayerView, target: Target) -> str:
        x, y = view.inputs[0], view.outputs[0]
        if view.op.kind not in KINDS:
            return f"no kernel moves data as {view.op.kind!r}"
        if x.dtype != y.dtype:
            return f"{x.dtype} to {y.dtype}"
        if view.op.kind in _RESHAPES and _moves(x) and _moves(y) and x.shape != y.shape:
            return "a reshape from NCHW to NCHW reorders elements in a way that has no strides"
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        if view.op.kind != "resize_nearest_neighbor":
            return {}
        return {key: np.array(view.op.params[key], np.int32) for key in ("rows", "columns")}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.generic import movement_tir

        if view.op.kind == "resize_nearest_neighbor":
            return movement_tir.resize(view)
        fill = view.op.params["value"] if view.op.kind == "pad" else None
        return movement_tir.copies(view, self.copies(view), fill, params, target)

    def copies(self, view: LayerView) -> list[Copy]:
        return [] if view.op.kind == "resize_nearest_neighbor" else [copy_of(view)]

    def cost(self, view: LayerView, params: CopyParams, target: Target) -> float:
        y = view.outputs[0]
        if view.op.kind == "resize_nearest_neighbor":
            return 8.0 * y.elements
        return super().cost(view, params, target) + (0.2 * y.bytes if view.op.kind == "pad" else 0)


class Concatenation(_Copying):
    """One copy for each input."""

    name = "generic.concatenation"
    ops: ClassVar[frozenset[str]] = frozenset({"concatenation"})

    def why_not(self, view: LayerView, target: Target) -> str:
        types = sorted({tensor.dtype for tensor in (*view.inputs, *view.outputs)})
        return "" if len(types) == 1 else f"{' and '.join(types)} in one concatenation"

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.generic import movement_tir

        return movement_tir.copies(view, self.copies(view), None, params, target)

    def copies(self, view: LayerView) -> list[Copy]:
        return parts(view)


def copy_of(view: LayerView) -> Copy:
    """The copy a Move does, but for a resize."""
    x, y, params = view.inputs[0], view.outputs[0], view.op.params
    into, out_of = logical_strides(y), logical_strides(x)
    kind = view.op.kind
    if kind == "layout":
        return _copy(x.shape, into, out_of)
    if kind == "transpose":
        return _copy(y.shape, into, [out_of[axis] for axis in params["permutation"]])
    if kind == "pad":
        start = sum(n * stride for n, stride in zip(params["before"], into, strict=True))
        return _copy(x.shape, into, out_of, target_offset=start)
    if kind in SLICES:
        begin, stride, size = params["begin"], params["stride"], params["size"]
        start = sum(n * step for n, step in zip(begin, out_of, strict=True))
        steps = [n * step for n, step in zip(stride, out_of, strict=True)]
        return _copy(size, _without_dropped(size, y), steps, source_offset=start)
    if _moves(y):
        return _copy(y.shape, into, row_major(y.shape))
    return _copy(x.shape, row_major(x.shape), out_of)


def parts(view: LayerView) -> list[Copy]:
    """The copies of a concatenation, but of inputs whose memory is already a part of the output's."""
    y = view.outputs[0]
    into = logical_strides(y)
    axis = view.op.axis % len(into)
    root, place_of_y = place(view.tensors, y.name)
    copies, start = [], 0
    for number, x in enumerate(view.inputs):
        offset = start * into[axis]
        if place(view.tensors, x.name) != (root, place_of_y + offset * ITEM_BYTES[y.dtype]):
            copies.append(_copy(x.shape, into, logical_strides(x), source=number, target_offset=offset))
        start += x.shape[axis]
    return copies


def _copy(
    shape: Sequence[int],
    into: Sequence[int],
    out_of: Sequence[int],
    *,
    source: int = 0,
    target_offset: int = 0,
    source_offset: int = 0,
) -> Copy:
    return Copy(source, target_offset, source_offset, tuple(walk(shape, into, out_of)))


def _without_dropped(size: Sequence[int], y: Tensor) -> list[int]:
    """Strides of the output along the axes of a slice, which may have lost axes of one element."""
    strides = iter([step for n, step in zip(y.shape, logical_strides(y), strict=True) if n > 1])
    return [next(strides) if n > 1 else 0 for n in size]


def _moves(tensor: Tensor) -> bool:
    """Whether a tensor's elements do not lie in logical order."""
    logical = row_major(tensor.shape)
    return any(n > 1 and a != b for n, a, b in zip(tensor.shape, logical, logical_strides(tensor), strict=True))


def _copy_cost(copy: Copy, item_bytes: int, params: CopyParams, target: Target) -> float:
    """Instructions; of memcpy half of one for a byte and 20 for a call, or 5 for an element."""
    count = 1
    for axis in copy.axes:
        count *= axis.extent
    runs, word = count / copy.axes[-1].extent, copy.word_bytes(item_bytes, target)
    if params.by == "words" and word:
        return 3.0 * count * item_bytes / word + 10 * runs
    return 0.5 * count * item_bytes + 20 * runs if copy.is_run(item_bytes) else 5.0 * count
