"""Data movement in rows: pad, slices, split, transpose, changes of layout, concatenation."""

from abc import abstractmethod
from collections.abc import Mapping
from math import prod
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
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.strides import offset
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.layers.tensor import ITEM_BYTES
from stages.ir.operators import movement
from stages.support.lazy import np, tirx

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
        """Build the fills with a pad's value, then the copies one after the other."""
        wanted = self.selected(view)
        filled = self.fills(view)
        y = view.outputs[0]
        item_bytes = ITEM_BYTES[y.dtype]
        with Function(view.layer.kind) as f:
            used = {copy.source for copy, _ in wanted}
            inputs = {i: f.input(i, (prod(x.physical_shape),), x.dtype) for i, x in enumerate(view.inputs) if i in used}
            out = f.output(0, (prod(y.physical_shape),), y.dtype)
            for number, fill in enumerate(filled):
                value = view.op.params["value"]
                outer, block = fill.axes[:-1], _fill(f"fill{number}", fill, y.dtype, value)
                with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(outer))) as at:
                    f.place(block, y=(out, offset(at, outer, 0) + fill.offset))
            for number, (copy, candidate) in enumerate(wanted):
                table = {}
                if candidate.kind == "gather":
                    table["offsets"] = f.constant(f"offsets{number}", (candidate.count,), "uint8")
                block = _rows(f"copy{number}", candidate, y.dtype, item_bytes)
                with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(candidate.outer))) as at:
                    first = offset(at, candidate.outer, 1) + copy.source_offset + _before(candidate, 1)
                    place = offset(at, candidate.outer, 0) + copy.target_offset + _before(candidate, 0)
                    f.place(block, x=(inputs[copy.source], first), y=(out, place), **table)
        return f.lowering()

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


def _rows(name: str, candidate: CopyCandidate, dtype: str, item_bytes: int) -> Block:
    """Copy y = x along rows and the axes of a row; rows may be read backwards."""
    into, out_of = candidate.row.strides
    starts = [-_before(candidate, number) for number in range(2)]

    def meaning(b: Any) -> None:
        names = [(f"j{depth}", axis.extent) for depth, axis in enumerate(candidate.inner)]
        with loop(("i", candidate.row.extent), *names) as (i, *along):
            store(
                b.y,
                b.x[i * out_of + offset(along, candidate.inner, 1) + starts[1]],
                i * into + offset(along, candidate.inner, 0) + starts[0],
            )

    operands = [Operand("x", (_reach(candidate, 1),), dtype)]
    if candidate.kind == "gather":
        operands.append(Operand("offsets", (candidate.count,), "uint8"))
    operands.append(Operand("y", (_reach(candidate, 0),), dtype, "w"))
    steps = (into * item_bytes, out_of * item_bytes)

    def arguments(b: Any) -> list[Any]:
        rows = [b.y.access_ptr("w", offset=starts[0]), b.x.access_ptr("r", offset=starts[1]), candidate.row.extent]
        if candidate.kind == "copy":
            return [*rows, candidate.count * item_bytes, *steps]
        if candidate.kind == "gather":
            return [*rows, candidate.count, *steps, b.offsets]
        stride = candidate.inner[0].strides[1 if candidate.kind == "pick" else 0] * item_bytes
        return [*rows, candidate.inner[0].extent, *steps, stride]

    function = f"mve_{candidate.kind}_rows"
    return Block(
        name,
        tuple(operands),
        meaning,
        function + (f"_{8 * candidate.item}" if candidate.kind in ("pick", "put") else ""),
        arguments,
    )


def _reach(candidate: CopyCandidate, number: int) -> int:
    """Return the elements from the first of a call to its last."""
    return 1 + sum((axis.extent - 1) * abs(axis.strides[number]) for axis in (candidate.row, *candidate.inner))


def _before(candidate: CopyCandidate, number: int) -> int:
    """Return the offset of the lowest row from the first one, at most 0."""
    return min(0, (candidate.row.extent - 1) * candidate.row.strides[number])


def _fill(name: str, fill: Fill, dtype: str, value: int) -> Block:
    """Fill y[i * step + j] = value along the last axis of a fill."""
    rows = fill.axes[-1]
    step = rows.strides[0]

    def meaning(b: Any) -> None:
        with loop(("i", rows.extent), ("j", fill.extent)) as (i, j):
            store(b.y, tirx.const(value, dtype), i * step + j)

    operands = (Operand("y", ((rows.extent - 1) * step + fill.extent,), dtype, "w"),)
    return Block(name, operands, meaning, "mve_fill_rows", lambda b: [b.y, value, rows.extent, fill.extent, step])
