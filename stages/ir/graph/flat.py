"""Layers that compute element by element, on tensors that lie in blocks: on memory as it is, whatever it means."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from stages.ir.tensor_layout import LOGICAL

if TYPE_CHECKING:
    from stages.ir.graph import LayerView


def flat(view: LayerView) -> LayerView:
    """The layer with each tensor as one in logical order, of as many bytes; as it is, where no blocks are alike.

    20 channels of 3x3 pixels in NCHW16c are 32 of 3x3: what fills up a block becomes what fills up the output's.
    """
    tensors = (*view.inputs, *view.outputs)
    first = tensors[0]
    if not first.layout.is_blocked or any((one.shape, one.layout) != (first.shape, first.layout) for one in tensors):
        return view
    digits = first.layout.digits(first.shape)
    filled = tuple(prod(d.extent for d in digits if d.axis == axis) for axis in range(len(first.shape)))
    made = {one.name: one.model_copy(update={"shape": filled, "layout": LOGICAL}) for one in tensors}
    return replace(view, tensors={**view.tensors, **made})
