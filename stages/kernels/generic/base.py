"""What the generic kernels share: their sources' header and the checks of types."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from stages.kernels.kernel import Kernel

if TYPE_CHECKING:
    from stages.graph import LayerView

SUFFIX = {"int8": "s8", "uint8": "u8"}  # of C functions that exist for both types
MAX_DEPTH = 65535  # products of two int8 that an int32 sum takes, with as much again for the weights' zero point


class GenericKernel(Kernel):
    headers: ClassVar[tuple[str, ...]] = ("generic.h",)


def not_eight_bit(view: LayerView, *, same: bool = True) -> str:
    """Why the layer's tensors are not int8 or uint8 ('' if they are); with `same`, all of the same type."""
    tensors = (*view.inputs, *view.outputs)
    for tensor in tensors:
        if tensor.dtype not in ("int8", "uint8"):
            return f"tensor {tensor.name} is {tensor.dtype}; this kernel is for int8 and uint8"
    if same and len({tensor.dtype for tensor in tensors}) > 1:
        return "int8 and uint8 tensors in one layer"
    return ""


def bad_weights(view: LayerView) -> str:
    """Why the layer's weights are not what the convolution kernels take, '' if they are."""
    if not view.has("weights"):
        return "the weights are not constant"
    if view.inputs[0].dtype == "int8" and (view.op.weight_zero_point or view.constant("weights").dtype != "int8"):
        return "weights with a zero point go with uint8 activations only"
    if str(view.constant("weights").dtype) not in ("int8", "uint8"):
        return f"weights are {view.constant('weights').dtype}, not int8 or uint8"
    return ""
