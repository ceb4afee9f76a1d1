"""Layers that compute element by element, on tensors that lie in blocks: on memory as it is, whatever it means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stages.graph.layout import Layout

if TYPE_CHECKING:
    from stages.graph import LayerView


def flat(view: LayerView) -> LayerView:
    """The layer with each tensor as a row of all that it has in memory; as it is, where no blocks are filled up alike.

    20 channels of 3x3 pixels in NCHW16c are 288 elements: what fills up a block becomes what fills up the output's.
    """
    tensors = (*view.inputs, *view.outputs)
    first = tensors[0]
    if not first.layout.is_blocked or any((one.shape, one.layout) != (first.shape, first.layout) for one in tensors):
        return view
    row = {"shape": (1, first.layout.elements(first.shape)), "layout": Layout()}
    return replace(view, tensors={**view.tensors, **{one.name: one.model_copy(update=row) for one in tensors}})
