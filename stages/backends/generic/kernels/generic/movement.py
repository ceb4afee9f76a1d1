"""Data movement: pad, slice, split, transpose, layout, resize, concatenation.

Any element type.
Each is a few copies between strided views, except the resize, which reads its source indices from tables.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
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
    whole_of,
    why_not_ascending,
    why_not_relayouts,
)
from stages.backends.kernels.kernel import Kernel, KernelParams, Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.stateful import StatefulFunction
from stages.backends.kernels.tir.strides import Axis, offset
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.layers.tensor import ITEM_BYTES
from stages.ir.operators import variables
from stages.support.lazy import np, tirx

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
        if view.op.kind == "resize_nearest_neighbor":
            return resize(view)
        fill = view.op.params["value"] if view.op.kind == "pad" else None
        return copies(view, self.copies(view), fill, params, target)

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
        return copies(view, self.copies(view), None, params, target)

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
        params = self.params() if why_not_ascending(view) else params
        return copies(view, self.copies(view), None, params, target)

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


def copies(view: LayerView, wanted: Sequence[Copy], fill: int | None, params: CopyParams, target: Target) -> Lowering:
    """Return the copies in order. With `fill`, the output is filled with that value first."""
    y = view.outputs[0]
    item_bytes = ITEM_BYTES[y.dtype]
    with StatefulFunction(view.layer.kind) as f:
        inputs, out = f.copied(view, {copy.source for copy in wanted})
        if fill is not None:
            f.place(_fill(y.elements, y.dtype, fill, item_bytes), y=out)
        for number, copy in enumerate(wanted):
            word_bytes = copy.word_bytes(item_bytes, target) if params.by == "words" else 0
            if word_bytes:
                outer, block = copy.axes[:-2], _rows(f"copy{number}", copy, y.dtype, item_bytes, word_bytes)
            else:
                outer = copy.axes[:-1]
                run = _moved if isinstance(view.op, variables.Slide) and copy.axes[-1].strides == (1, 1) else _run
                block = run(f"copy{number}", copy, y.dtype, item_bytes)
            with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(outer))) as at:
                first = offset(at, outer, 1) + copy.source_offset + _lowest(copy)
                place = offset(at, outer, 0) + copy.target_offset
                f.place(block, x=(inputs[copy.source], first), y=(out, place))
    return f.lowering()


def whole(view: LayerView) -> Lowering:
    """Return a copy of the whole input in memory order."""
    x, y = view.inputs[0], view.outputs[0]
    with Function(view.layer.kind) as f:
        source, out = f.input(0, (x.elements,), x.dtype), f.output(0, (y.elements,), y.dtype)
        f.place(_run("copy", whole_of(view), y.dtype, ITEM_BYTES[y.dtype]), x=source, y=out)
    return f.lowering()


def resize(view: LayerView) -> Lowering:
    """Return each output pixel from the input row and column in the tables."""
    x, y = view.inputs[0], view.outputs[0]
    batch, height, width, channels = y.shape

    def at(layout: str, n: Any, row: Any, column: Any, c: Any) -> tuple[Any, ...]:
        return (n, c, row, column) if layout == "NCHW" else (n, row, column, c)

    def meaning(b: Any) -> None:
        if y.layout == "NCHW":
            with loop(("n", batch), ("c", channels), ("oy", height), ("ox", width)) as (n, c, oy, ox):
                element(b, n, oy, ox, c)
        else:
            with loop(("n", batch), ("oy", height), ("ox", width), ("c", channels)) as (n, oy, ox, c):
                element(b, n, oy, ox, c)

    def element(b: Any, n: Any, oy: Any, ox: Any, c: Any) -> None:
        store(b.y, b.x[at(x.layout, n, b.rows[oy], b.columns[ox], c)], *at(y.layout, n, oy, ox, c))

    operands = (
        Operand("x", x.physical_shape, x.dtype),
        Operand("rows", (height,), "int32"),
        Operand("columns", (width,), "int32"),
        Operand("y", y.physical_shape, y.dtype, "w"),
    )
    with Function("resize") as f:
        source = f.input(0, x.physical_shape, x.dtype)
        rows, columns = f.constant("rows", (height,), "int32"), f.constant("columns", (width,), "int32")
        target = f.output(0, y.physical_shape, y.dtype)
        f.place(Block("resize", operands, meaning), x=source, rows=rows, columns=columns, y=target)
    return f.lowering()


def _rows(name: str, copy: Copy, dtype: str, item_bytes: int, word_bytes: int) -> Block:
    """Return y[i * step + j] = x[i * step + j] along the two innermost axes, by words."""
    row = copy.axes[-2] if len(copy.axes) > 1 else Axis(1, (0, 0))
    run, (into, out_of) = copy.axes[-1].extent, row.strides

    def meaning(b: Any) -> None:
        with loop(("i", row.extent), ("j", run)) as (i, j):
            store(b.y, b.x[i * out_of + j], i * into + j)

    operands = (
        Operand("x", ((row.extent - 1) * out_of + run,), dtype),
        Operand("y", ((row.extent - 1) * into + run,), dtype, "w"),
    )
    amounts = (row.extent, run * item_bytes // word_bytes, into * item_bytes, out_of * item_bytes)
    return Block(name, operands, meaning, f"fl_copy_rows_{8 * word_bytes}", lambda b: [b.y, b.x, *amounts])


def _run(name: str, copy: Copy, dtype: str, item_bytes: int) -> Block:
    """Return y[i * step] = x[i * step] along the innermost axis. One run of bytes is a memcpy."""
    run = copy.axes[-1]
    into, out_of = run.strides
    first = -_lowest(copy)

    def meaning(b: Any) -> None:
        with loop(("i", run.extent)) as i:
            store(b.y, b.x[i * out_of + first], i * into)

    operands = (
        Operand("x", ((run.extent - 1) * abs(out_of) + 1,), dtype),
        Operand("y", ((run.extent - 1) * into + 1,), dtype, "w"),
    )
    if not copy.is_run(item_bytes):
        return Block(name, operands, meaning)
    return Block(name, operands, meaning, "memcpy", lambda b: [b.y, b.x, run.extent * item_bytes])


def _moved(name: str, copy: Copy, dtype: str, item_bytes: int) -> Block:
    """Return y[i] = x[i] for buffers that may overlap: in descending order if y is after x."""
    count = copy.axes[-1].extent
    last = count - 1 if copy.target_offset > copy.source_offset else 0

    def meaning(b: Any) -> None:
        with loop(("i", count)) as i:
            at = last - i if last else i
            store(b.y, b.x[at], at)

    operands = (Operand("x", (count,), dtype), Operand("y", (count,), dtype, "w"))
    return Block(name, operands, meaning, "memmove", lambda b: [b.y, b.x, count * item_bytes])


def _lowest(copy: Copy) -> int:
    """Return the lowest offset along the innermost axis: at most 0, below if it goes backwards."""
    run = copy.axes[-1]
    return min(0, (run.extent - 1) * run.strides[1])


def _fill(elements: int, dtype: str, value: int, item_bytes: int) -> Block:
    def meaning(b: Any) -> None:
        with loop(("i", elements)) as i:
            store(b.y, tirx.const(value, dtype), i)

    operands = (Operand("y", (elements,), dtype, "w"),)
    if item_bytes != 1:
        return Block("fill", operands, meaning)
    return Block("fill", operands, meaning, "memset", lambda b: [b.y, value, elements])
