"""Data movement by words of any alignment: pad, slice, layout, resize, concatenation.

For cores whose C library copies byte by byte or has a high cost per call. The costs are for cores that trap on
unaligned words.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import gcd, prod
from typing import Any, ClassVar

from stages.backends.kernels.copies import (
    BLOCKS,
    RESHAPES,
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
from stages.backends.kernels.copy_calls import Calls, calls_of, resized
from stages.backends.kernels.fills import Fill, fills
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, position, store
from stages.backends.kernels.tir.stateful import StatefulFunction
from stages.backends.kernels.tir.strides import Axis, offset
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.layers.tensor import ITEM_BYTES
from stages.support.lazy import np, tirx

LAYER, CALL = 35.0, 45.0  # instructions around a layer, and around each call for rows
FILL_RUN, FILL_BYTE, FILL_WORD = 20.0, 0.3, 1.75  # instructions of a run of bytes, of a byte, and of a whole word
RESIZE = "resize_nearest_neighbor"
KINDS = (*SLICES, *RESHAPES, *BLOCKS, "pad", "transpose", "layout", RESIZE)


class WordCopies(Kernel):
    """Copy runs by words, and single bytes by blocks of four rows, at any alignment.

    prefix  of its C functions
    """

    sources = ("copies.c",)
    prefix: ClassVar[str]

    @abstractmethod
    def copies(self, view: LayerView) -> list[Copy]:
        """Return the copies of the layer, none for a resize."""

    def why_not_copies(self, view: LayerView) -> str:
        """Return why its functions cannot make these copies, '' if they can."""
        item_bytes = ITEM_BYTES[view.outputs[0].dtype]
        if item_bytes != 1 and not all(calls_of(copy).is_run for copy in self.copies(view)):
            return f"elements of {item_bytes} bytes that are not adjacent"
        return ""

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return copies(view, self.copies(view), self.fills(view), self.prefix)

    def fills(self, view: LayerView) -> list[Fill]:
        """Return the fills of a pad around its copy."""
        return []

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the estimated instructions."""
        register, item_bytes = target.word_bits // 8, ITEM_BYTES[view.outputs[0].dtype]
        filled = sum(
            fill.runs * (FILL_RUN + FILL_WORD * fill.extent * item_bytes / register) for fill in self.fills(view)
        )
        return LAYER + filled + sum(self._copy_cost(copy, view, target) for copy in self.copies(view))

    def _copy_cost(self, copy: Copy, view: LayerView, target: Target) -> float:
        calls, register = calls_of(copy), target.word_bits // 8
        item_bytes, rows, columns = ITEM_BYTES[view.outputs[0].dtype], calls.rows.extent, calls.columns.extent
        if calls.is_run:  # in the largest words that divide all steps, or in registers that are merged
            size = columns * item_bytes
            steps = [step for axis in (calls.rows, *calls.outer) if axis.extent > 1 for step in axis.strides]
            together = gcd(size, item_bytes * gcd(copy.target_offset, copy.source_offset, *steps))
            word = next(n for n in (register, 4, 2, 1) if together % n == 0)
            times = rows * min(8 + 2.4 * size / word, 45 + 4.5 * size / register)
        elif calls.rows.strides[0] == calls.columns.strides[1] == 1:  # transposed
            times = rows * (11 + columns * (0.8 + 6 / register))
        else:
            times = rows * (12 + 4.3 * columns)
        return prod(axis.extent for axis in calls.outer) * (CALL + times)


class WordMove(WordCopies):
    """Slice, transpose, pad and resize.

    Slices and transposes are one copy. A pad also fills the rest. A resize copies pixels or rows.
    """

    ops: ClassVar[frozenset[str]] = frozenset({"move"})

    def why_not_layouts(self, view: LayerView) -> str:
        """Return '': tensors change from any layout to any other."""
        return "" if view.op.kind == "layout" else super().why_not_layouts(view)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return _why_not_moved(view) or self.why_not_copies(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        tables = ("rows", "columns") if view.op.kind == RESIZE else ()
        return {key: np.array(view.op.params[key], np.int32) for key in tables}

    def copies(self, view: LayerView) -> list[Copy]:
        if view.op.kind == RESIZE:
            return []
        return relayouts(view.inputs[0], view.outputs[0]) if view.op.kind == "layout" else [copy_of(view)]

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        if view.op.kind != RESIZE:
            return super().lower(view, params, target)
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
    """Concatenation: one copy per input."""

    ops: ClassVar[frozenset[str]] = frozenset({"concatenation"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        types = sorted({tensor.dtype for tensor in (*view.inputs, *view.outputs)})
        return f"{' and '.join(types)} in one concatenation" if len(types) > 1 else self.why_not_copies(view)

    def copies(self, view: LayerView) -> list[Copy]:
        return parts(view)


class WordVariable(WordCopies):
    """Copy of a complete state."""

    ops: ClassVar[frozenset[str]] = frozenset({"read_variable", "assign_variable"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        x, y = view.inputs[0], view.outputs[0]
        return "" if x.lies_as(y.layout) else f"input in {x.layout}, output in {y.layout}"

    def copies(self, view: LayerView) -> list[Copy]:
        return [whole_of(view)]


class WordSlide(WordCopies):
    """Move of a window's rows within its state, towards its start."""

    ops: ClassVar[frozenset[str]] = frozenset({"slide"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_ascending(view) or self.why_not_copies(view)

    def copies(self, view: LayerView) -> list[Copy]:
        return [slide_of(view)]


def _why_not_moved(view: LayerView) -> str:
    x, y, kind = view.inputs[0], view.outputs[0], view.op.kind
    if kind not in KINDS:
        return f"data movement {kind!r}; this kernel does not support it"
    if x.dtype != y.dtype:
        return f"{x.dtype} to {y.dtype}"
    if kind == RESIZE and (x.layout or "NHWC") != (y.layout or "NHWC"):
        return f"a layout change from {x.layout} to {y.layout}"
    if kind == "pad" and ITEM_BYTES[y.dtype] != 1 and view.op.params["value"] != 0:
        return f"a pad value other than 0 in elements of {ITEM_BYTES[y.dtype]} bytes"
    if kind in RESHAPES and is_permuted(x) and is_permuted(y) and x.shape != y.shape:
        return "a reshape from NCHW to NCHW, which strides cannot express"
    return why_not_relayouts(x, y) if kind == "layout" else ""


def copies(view: LayerView, wanted: Sequence[Copy], filled: Sequence[Fill], prefix: str) -> Lowering:
    """Return the runs of a pad's value, then the copies."""
    y = view.outputs[0]
    with StatefulFunction(view.layer.kind) as f:
        inputs, out = f.copied(view, {copy.source for copy in wanted})
        for number, fill in enumerate(filled):
            outer, block = fill.axes[:-1], _fill(f"fill{number}", fill, y.dtype, view.op.params["value"], prefix)
            with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(outer))) as at:
                f.place(block, y=(out, offset(at, outer, 0) + fill.offset))
        for number, copy in enumerate(wanted):
            calls, name = calls_of(copy), f"copy{number}"
            block = (_runs if calls.is_run else _bytes)(name, calls, y.dtype, prefix)
            with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(calls.outer))) as at:
                first = offset(at, calls.outer, 1) + copy.source_offset - _start(calls, 1)
                place = offset(at, calls.outer, 0) + copy.target_offset - _start(calls, 0)
                f.place(block, x=(inputs[copy.source], first), y=(out, place))
    return f.lowering()


def resize(view: LayerView, prefix: str) -> Lowering:
    """Return the resize, one image or plane after the other."""
    x, y = view.inputs[0], view.outputs[0]
    images, height, width, pixel_bytes = resized(view)
    pixel = pixel_bytes // ITEM_BYTES[y.dtype]
    x_height, x_width = x.shape[1:3]

    def meaning(b: Any) -> None:
        with (
            loop(("oy", height), ("ox", width), ("c", pixel)) as (oy, ox, c),
            position("iy", b.rows[oy]) as iy,
            position("ix", b.columns[ox]) as ix,
        ):
            store(b.y, b.x[iy, ix, c], oy, ox, c)

    operands = (
        Operand("x", (x_height, x_width, pixel), x.dtype),
        Operand("rows", (height,), "int32"),
        Operand("columns", (width,), "int32"),
        Operand("y", (height, width, pixel), y.dtype, "w"),
    )

    def arguments(b: Any) -> list[Any]:
        return [b.y, b.x, b.rows, b.columns, height, width, pixel_bytes, x_width * pixel_bytes]

    block = Block("resize", operands, meaning, f"{prefix}_nearest", arguments)
    with Function("resize") as f:
        source = f.input(0, (images, x_height, x_width, pixel), x.dtype)
        rows, columns = f.constant("rows", (height,), "int32"), f.constant("columns", (width,), "int32")
        target = f.output(0, (images, height, width, pixel), y.dtype)
        with f.loop(("n", images)) as (n,):
            f.place(block, x=(source, n, 0, 0, 0), rows=rows, columns=columns, y=(target, n, 0, 0, 0))
    return f.lowering()


def _runs(name: str, calls: Calls, dtype: str, prefix: str) -> Block:
    """Return the block y[i * step + j] = x[i * step + j]. Rows may go backwards."""
    item_bytes = ITEM_BYTES[dtype]
    into, out_of = calls.rows.strides

    def arguments(b: Any) -> list[Any]:
        rows, run = calls.rows.extent, calls.columns.extent
        return [*_firsts(b, calls), rows, run * item_bytes, into * item_bytes, out_of * item_bytes]

    return Block(name, _operands(calls, dtype), _meaning(calls), f"{prefix}_copy_rows", arguments)


def _bytes(name: str, calls: Calls, dtype: str, prefix: str) -> Block:
    """Return the block y[i * row + j * column] = x[i * row + j * column].

    x and y have separate steps.
    """
    rows, columns = calls.rows, calls.columns

    def arguments(b: Any) -> list[Any]:
        steps = (rows.strides[0], columns.strides[0], rows.strides[1], columns.strides[1])
        return [*_firsts(b, calls), rows.extent, columns.extent, *steps]

    return Block(name, _operands(calls, dtype), _meaning(calls), f"{prefix}_copy_bytes", arguments)


def _meaning(calls: Calls) -> Any:
    rows, columns = calls.rows, calls.columns

    def meaning(b: Any) -> None:
        with loop(("i", rows.extent), ("j", columns.extent)) as (i, j):
            at = [i * rows.strides[n] + j * _step(columns, n) + _start(calls, n) for n in range(2)]
            store(b.y, b.x[at[1]], at[0])

    return meaning


def _operands(calls: Calls, dtype: str) -> tuple[Operand, Operand]:
    sizes = [
        (calls.rows.extent - 1) * abs(calls.rows.strides[n])
        + (calls.columns.extent - 1) * abs(_step(calls.columns, n))
        + 1
        for n in range(2)
    ]
    return Operand("x", (sizes[1],), dtype), Operand("y", (sizes[0],), dtype, "w")


def _firsts(b: Any, calls: Calls) -> list[Any]:
    """Return the first elements' positions: after the lowest ones where axes go backwards."""
    return [
        buffer.access_ptr(access, offset=_start(calls, n))
        for n, (buffer, access) in enumerate(((b.y, "w"), (b.x, "r")))
    ]


def _start(calls: Calls, number: int) -> int:
    """Return the distance from the lowest element to the first."""
    axes = (calls.rows, calls.columns)
    return -sum(min(0, (axis.extent - 1) * _step(axis, number)) for axis in axes)


def _step(axis: Axis, number: int) -> int:
    return axis.strides[number] if axis.extent > 1 else 0


def _fill(name: str, fill: Fill, dtype: str, value: int, prefix: str) -> Block:
    """Return the block y[i * step + j] = value along the last of a fill's axes."""
    rows, item_bytes = fill.axes[-1], ITEM_BYTES[dtype]
    step = rows.strides[0]

    def meaning(b: Any) -> None:
        with loop(("i", rows.extent), ("j", fill.extent)) as (i, j):
            store(b.y, tirx.const(value, dtype), i * step + j)

    operands = (Operand("y", ((rows.extent - 1) * step + fill.extent,), dtype, "w"),)
    amounts = (value, rows.extent, fill.extent * item_bytes, step * item_bytes)
    return Block(name, operands, meaning, f"{prefix}_fill_rows", lambda b: [b.y, *amounts])
