"""Element-wise layers on blocked tensors: computation on the memory as it is."""

from dataclasses import replace
from math import prod

from stages.ir.layers.layer import LayerView
from stages.ir.tensor_layout import LOGICAL


def flat(view: LayerView) -> LayerView:
    """Return the layer with each tensor in logical order over its memory, padding included.

    Returns the view unchanged unless all tensors have the same shape and blocked layout. 20 channels of 3x3 pixels in
    NCHW16c become 32 of 3x3: the padding of the inputs gives the padding of the output.
    """
    tensors = (*view.inputs, *view.outputs)
    first = tensors[0]
    if not first.layout.is_blocked or any(
        (tensor.shape, tensor.layout) != (first.shape, first.layout) for tensor in tensors
    ):
        return view
    digits = first.layout.digits(first.shape)
    filled = tuple(prod(d.extent for d in digits if d.axis == axis) for axis in range(len(first.shape)))
    flattened = {tensor.name: tensor.model_copy(update={"shape": filled, "layout": LOGICAL}) for tensor in tensors}
    return replace(view, tensors={**view.tensors, **flattened})
