"""A layer on a band: an ordinary image of few rows, without padding above and below."""

from collections.abc import Mapping
from dataclasses import replace

from stages.ir.graph import LayerView
from stages.ir.layers import Window
from stages.ir.operators.movement import Move
from stages.ir.tensor_layout import NCHW, NHWC, Layout
from stages.lower.streaming.row_places import of_rows, source_rows, with_tables
from stages.lower.streaming.row_window import RowWindow
from stages.lower.streaming.schedule import RowLayer

ROWS_OF_PLANES = Layout("NHCW")
"""Each row is contiguous, and consists of a row of each channel."""


def band_view(view: LayerView, window: RowWindow, rows: int, layouts: Mapping[str, Layout]) -> LayerView:
    """Return the layer for `rows` rows of its output, or of its input if it accumulates.

    layouts  of tensors that are not NHWC: rows of planes. A band of one row has the layout of planes
    """
    tensors = dict(view.tensors)
    size = rows if window.accumulates else window.span(rows)

    def in_band(name: str, height: int) -> None:
        tensor = view.tensors[name]
        layout = layouts.get(name, NHWC)
        if layout == ROWS_OF_PLANES and height == 1:
            layout = NCHW
        shape = (1, height, *tensor.shape[2:])
        tensors[name] = tensor.model_copy(update={"shape": shape, "layout": layout})

    for name in view.layer.inputs:
        if not view.tensors[name].constant:
            in_band(name, size)
    if not window.accumulates:
        in_band(view.layer.outputs[0], rows)
    if source_rows(view) is not None:
        view = with_tables(view, [window.first(0)] * rows)
    layer, op = view.layer, view.op
    if isinstance(op, Move) and source_rows(view) is None:
        layer = layer.model_copy(update={"op": of_rows(op, rows)})
    if isinstance(op, Window):
        _, left, _, right = op.padding
        layer = layer.model_copy(update={"op": op.model_copy(update={"padding": (0, left, 0, right)})})
    return replace(view, layer=layer, tensors=tensors)


def with_all_tables(view: LayerView, layer: RowLayer) -> LayerView:
    """Return a resize with the places of all rows, of which each call uses the next ones."""
    starts, done = list[int](), 0
    while done < layer.height:
        count = layer.count(done)
        starts += [layer.window.first(done)] * count
        done += count
    return with_tables(view, starts)
