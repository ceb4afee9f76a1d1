"""Checks that kernels of int16 activations share."""

from stages.ir.graph import LayerView


def why_not_sixteen(view: LayerView) -> str:
    """Return why a tensor of the layer is not int16, '' if all are."""
    for tensor in (*view.inputs, *view.outputs):
        if tensor.dtype != "int16":
            return f"tensor {tensor.name} is {tensor.dtype}; this kernel is for int16"
    return ""


def not_sixteen_by_eight(view: LayerView) -> str:
    """Return why a layer has not int16 activations with constant int8 weights, '' if it has."""
    if bad := why_not_sixteen(view):
        return bad
    if not view.has("weights") or str(view.constant("weights").dtype) != "int8" or view.op.weight_zero_point:
        return "weights are not int8 constants with zero point 0"
    return ""
