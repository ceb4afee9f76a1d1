"""Data movement: pad, slices, split, transpose, layout, resize, concatenation. Any type of element.

Every one of them is a few copies between strided views, but for the resize, which takes its sources from tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from stages.graph.tensor import ITEM_BYTES
from stages.kernels.generic.base import GenericKernel
from stages.kernels.kernel import Lowering
from stages.kernels.tir.strides import Axis, logical_strides, row_major, walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView, Tensor
    from stages.targets.spec import Target

_SLICES = ("slice", "strided_slice", "split")
_RESHAPES = ("reshape", "squeeze")
KINDS = (*_SLICES, *_RESHAPES, "pad", "transpose", "layout", "resize_nearest_neighbor")

RUN_BYTES = 16
"""A run of at least so many bytes is left to memcpy."""


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


class Move(GenericKernel):
    """memcpy for runs of bytes, loops that TVM prints for single elements. A pad fills its whole output first."""

    name = "generic.move"
    ops: ClassVar[frozenset[str]] = frozenset({"move"})
    sources = ()

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
        return movement_tir.copies(view, [copy_of(view)], fill)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        y = view.outputs[0]
        if view.op.kind == "resize_nearest_neighbor":
            return 8.0 * y.elements
        return _copy_cost(copy_of(view), ITEM_BYTES[y.dtype]) + (0.2 * y.bytes if view.op.kind == "pad" else 0)


class Concatenation(GenericKernel):
    """One copy for each input, by memcpy where it is runs of bytes."""

    name = "generic.concatenation"
    ops: ClassVar[frozenset[str]] = frozenset({"concatenation"})
    sources = ()

    def why_not(self, view: LayerView, target: Target) -> str:
        types = sorted({tensor.dtype for tensor in (*view.inputs, *view.outputs)})
        return "" if len(types) == 1 else f"{' and '.join(types)} in one concatenation"

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.generic import movement_tir

        return movement_tir.copies(view, parts(view), None)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return sum(_copy_cost(copy, ITEM_BYTES[view.outputs[0].dtype]) for copy in parts(view))


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
    if kind in _SLICES:
        begin, stride, size = params["begin"], params["stride"], params["size"]
        start = sum(n * step for n, step in zip(begin, out_of, strict=True))
        steps = [n * step for n, step in zip(stride, out_of, strict=True)]
        return _copy(size, _without_dropped(size, y), steps, source_offset=start)
    if _moves(y):
        return _copy(y.shape, into, row_major(y.shape))
    return _copy(x.shape, row_major(x.shape), out_of)


def parts(view: LayerView) -> list[Copy]:
    """The copies of a concatenation."""
    into = logical_strides(view.outputs[0])
    axis = view.op.axis % len(into)
    copies, start = [], 0
    for number, x in enumerate(view.inputs):
        copies.append(_copy(x.shape, into, logical_strides(x), source=number, target_offset=start * into[axis]))
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


def _copy_cost(copy: Copy, item_bytes: int) -> float:
    """Half an instruction for a byte and 20 for a call of memcpy, or 5 for an element."""
    count = 1
    for axis in copy.axes:
        count *= axis.extent
    run = copy.axes[-1].extent
    return 0.5 * count * item_bytes + 20 * (count / run) if copy.is_run(item_bytes) else 5.0 * count
