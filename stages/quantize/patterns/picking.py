"""GATHER, TILE, MIRROR_PAD and other operators that pick elements by index.

With known indices: a slice if they are evenly spaced, else tables. With computed ones: GATHER and its like.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from stages.ir.arrays import Array
from stages.ir.graph import Move, Tensor
from stages.ir.operators.picking import REFLECT, Gather, Pick
from stages.quantize.operator import Operator
from stages.quantize.patterns.operand import operands
from stages.quantize.patterns.shapes import intermediate, reshaped
from stages.quantize.writer import GraphWriter


def gather(operator: Operator, writer: GraphWriter) -> None:
    """GATHER: rows along an axis; batches share their leading axes with the indices."""
    axis, batch = int(operator.options["axis"]), int(operator.options["batchDims"])
    shape, indices = operator.shape_at(0), operator.shape_at(1)
    axis %= len(shape)
    batch += len(indices) if batch < 0 else 0
    known = operator.operand(1)
    if known is not None and not isinstance(known, Tensor) and not batch:
        picked(operator, writer, operands(operator, writer, 1)[0], {axis: known.reshape(-1)}, "gather")
        return
    op = Gather(
        kind="gather",
        batch=prod(shape[:batch]),
        outer=prod(shape[batch:axis]),
        sizes=(shape[axis],),
        inner=prod(shape[axis + 1 :]),
        rows=prod(indices[batch:]),
        negative=bool(operator.rule.get("negative")),
    )
    writer.layer(op, operands(operator, writer), operator.outputs[0])


def gather_nd(operator: Operator, writer: GraphWriter) -> None:
    """GATHER_ND: the last axis of the indices is a position along the first axes of the input."""
    shape, indices = operator.shape_at(0), operator.shape_at(1)
    depth = indices[-1]
    op = Gather(
        kind="gather_nd", batch=1, outer=1, sizes=shape[:depth], inner=prod(shape[depth:]), rows=prod(indices[:-1])
    )
    writer.layer(op, operands(operator, writer), operator.outputs[0])


def embedding_lookup(operator: Operator, writer: GraphWriter) -> None:
    """EMBEDDING_LOOKUP: rows of the second input by the first."""
    ids, table = operands(operator, writer)
    rows, *rest = table.shape
    op = Gather(kind="embedding_lookup", batch=1, outer=1, sizes=(rows,), inner=prod(rest), rows=ids.elements)
    writer.layer(op, [table, ids], operator.outputs[0])


def mirror_pad(operator: Operator, writer: GraphWriter) -> None:
    """MIRROR_PAD: mirrored elements before the first and after the last.

    The mode `symmetric` repeats the first and the last element, `reflect` does not.
    """
    source, amounts = operands(operator, writer, 1)[0], operator.known(1)
    reflect = operator.options["mode"] == REFLECT
    tables = {}
    for axis, (size, around) in enumerate(zip(source.shape, amounts.tolist(), strict=True)):
        if any(around):
            numbers = np.arange(size)
            tables[axis] = (
                np.pad(numbers, around, mode="reflect") if reflect else np.pad(numbers, around, mode="symmetric")
            )
    picked(operator, writer, source, tables, "mirror_pad")


def tile(operator: Operator, writer: GraphWriter) -> None:
    """TILE: the input several times along each axis."""
    source, times = operands(operator, writer, 1)[0], operator.known(1).reshape(-1).tolist()
    tables = {axis: np.tile(np.arange(source.shape[axis]), count) for axis, count in enumerate(times) if count > 1}
    picked(operator, writer, source, tables, "tile")


def broadcast_to(operator: Operator, writer: GraphWriter) -> None:
    """BROADCAST_TO: axes of size 1 are repeated."""
    source, out = operands(operator, writer, 1)[0], operator.outputs[0]
    shape = (1,) * (len(out.shape) - len(source.shape)) + source.shape
    tables = {
        axis: np.zeros(new, int) for axis, (size, new) in enumerate(zip(shape, out.shape, strict=True)) if size < new
    }
    picked(operator, writer, reshaped(writer, source, shape), tables, "broadcast_to")


def reverse(operator: Operator, writer: GraphWriter) -> None:
    """REVERSE_V2: reversed along its axes."""
    source, axes = operands(operator, writer, 1)[0], operator.known(1).reshape(-1).tolist()
    sizes = {axis % len(source.shape): source.shape[axis] for axis in axes}
    picked(operator, writer, source, {axis: np.arange(size)[::-1] for axis, size in sizes.items()}, "reverse_v2")


def picked(operator: Operator, writer: GraphWriter, source: Tensor, tables: Mapping[int, Array], kind: str) -> None:
    """Write the output from `source` by the index tables of axes.

    A slice if the indices are evenly spaced; reshaped if needed.
    """
    out = operator.outputs[0]
    shape = tuple(len(tables[axis]) if axis in tables else size for axis, size in enumerate(source.shape))
    result = out if shape == out.shape else intermediate(writer, source, shape, kind)
    steps = {axis: _step(table) for axis, table in tables.items()}
    if all(steps.values()):
        params = {
            "begin": [int(tables[axis][0]) if axis in tables else 0 for axis in range(len(shape))],
            "stride": [steps.get(axis, 1) for axis in range(len(shape))],
            "size": list(shape),
        }
        writer.layer(Move(kind="strided_slice", params=params), [source], result)
    else:
        constants = {f"from{i}": np.asarray(table, np.int32) for i, table in enumerate(tables.values())}
        writer.layer(Pick(kind=kind, axes=tuple(tables)), [source], result, constants)
    if result is not out:
        writer.layer(Move(kind="reshape"), [result], out, alias=True)


def _step(table: Array) -> int:
    """Distance between a table's indices, 0 if it varies (or is 0)."""
    steps = set(np.diff(table).tolist())
    return 1 if not steps else steps.pop() if len(steps) == 1 else 0


PATTERNS = {
    "BROADCAST_TO": broadcast_to,
    "EMBEDDING_LOOKUP": embedding_lookup,
    "GATHER": gather,
    "GATHER_ND": gather_nd,
    "MIRROR_PAD": mirror_pad,
    "REVERSE_V2": reverse,
    "TILE": tile,
}
