"""Steps of inputs along the runs of an element-wise layer's output."""

from stages.backends.kernels.tir.strides import broadcast_strides, logical_strides, walk
from stages.ir.graph import LayerView


def why_not_steps(view: LayerView) -> str:
    """Return why an input is neither dense nor constant along an output run, '' if all are."""
    y = view.outputs[0]
    run = walk(y.shape, logical_strides(y), *(broadcast_strides(x, y.shape) for x in view.inputs))[-1]
    return "" if set(run.strides[1:]) <= {0, 1} else f"steps of {max(run.strides[1:])} elements"
