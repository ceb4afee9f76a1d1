"""The rows that data movement and resizes read.

A resize has tables with the source rows of each output row. A call by rows gets the part of the table for its rows,
with places that count from the first row of the call's input.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from stages.ir.graph import LayerView
from stages.ir.layers.tensor import ITEM_BYTES
from stages.ir.operators.interpolation import ResizeBilinear
from stages.ir.operators.movement import Move
from stages.lower.streaming.row_window import RowWindow
from stages.support.lazy import np

ROW_TABLES = ("rows", "row_shares")
"""Constants of resizes with an entry for each output row."""


def source_rows(view: LayerView) -> list[tuple[int, int]] | None:
    """Return first and last source row of each output row of a resize; None of other layers."""
    if isinstance(view.op, ResizeBilinear):
        return [(min(rows), max(rows)) for rows in view.constant("rows").tolist()]
    if isinstance(view.op, Move) and view.op.kind == "resize_nearest_neighbor":
        return [(row, row) for row in view.op.params["rows"]]
    return None


def fitted(places: Sequence[tuple[int, int]], height: int) -> RowWindow:
    """Return the smallest window of constant slope with these rows of `height` in all."""
    rows = len(places)
    slopes = Fraction(height, rows), Fraction(height - 1, max(rows - 1, 1))
    windows = []
    for stride, rate in (slope.as_integer_ratio() for slope in slopes):
        shift = min(first * rate + rate - 1 - row * stride for row, (first, _) in enumerate(places))
        size = 1 + max(last - (row * stride + shift) // rate for row, (_, last) in enumerate(places))
        padding = max(0, -(shift // rate))
        windows.append(RowWindow(size, stride, padding, None, rate=rate, shift=shift + padding * rate))
    return min(windows, key=lambda window: window.size)


def moved(view: LayerView) -> RowWindow | None:
    """Return the window of data movement that is no resize; None if it does not keep rows."""
    op, (x, y) = view.op, (*view.inputs, *view.outputs)
    params = op.params
    if op.kind == "depth_to_space":
        return RowWindow(rate=params["block"][0], blocks=True)
    if op.kind == "space_to_depth":
        return RowWindow(size=params["block"][0], stride=params["block"][0])
    if op.kind == "pad":
        before, value = params["before"][1], params["value"]
        is_stored = not value or ITEM_BYTES[y.dtype] == 1 or y.shape[1] == x.shape[1]
        return RowWindow(padding=before, fill=int(value)) if is_stored else None
    if op.kind == "transpose":
        return RowWindow() if params["permutation"][1] == 1 else None
    if "begin" in params and params["stride"][1] > 0 and y.shape[1] == params["size"][1]:
        return RowWindow(stride=params["stride"][1], shift=params["begin"][1])
    return RowWindow() if op.kind == "resize_nearest_neighbor" else None


def of_rows(op: Move, rows: int) -> Move:
    """Return data movement for a band of `rows` rows of the output; not for a resize."""
    changed = {"before": 0, "after": 0} if op.kind == "pad" else {"begin": 0, "size": rows, "stride": 1}
    params = {key: [*value[:1], changed[key], *value[2:]] for key, value in op.params.items() if key in changed}
    return op.model_copy(update={"params": {**op.params, **params}})


def with_tables(view: LayerView, starts: Sequence[int]) -> LayerView:
    """Return a resize for the first output rows.

    starts  of each of them, the input row from which on its places count: the first one of its call
    """
    op, rows, layer = view.op, len(starts), view.layer
    if isinstance(op, Move):
        places = [row - start for row, start in zip(op.params["rows"], starts, strict=False)]
        op = op.model_copy(update={"params": {**op.params, "rows": places}})
        return replace(view, layer=layer.model_copy(update={"op": op}))
    names = {key: layer.constants[key] for key in ROW_TABLES}
    arrays = {name: view.arrays[name][:rows] for name in names.values()}
    arrays[names["rows"]] = arrays[names["rows"]] - np.array(starts, np.int32)[:, None]
    return replace(view, arrays={**view.arrays, **arrays})
