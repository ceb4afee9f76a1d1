"""The rows of its inputs that a layer needs for the rows of its output."""

from stages.ir.graph import LayerView
from stages.ir.layers import Tensor
from stages.ir.layers.tensor import ITEM_BYTES
from stages.ir.operators.activations import Activation
from stages.ir.operators.concat_and_split import Concatenation
from stages.ir.operators.floats import Float
from stages.ir.operators.interpolated import WideSoftmax
from stages.ir.operators.interpolation import ResizeBilinear
from stages.ir.operators.movement import Move
from stages.ir.operators.onnx_softmax import FloatSoftmax, NearestSoftmax
from stages.ir.operators.products import Conv2D, DepthwiseConv2D
from stages.ir.operators.reductions import Mean
from stages.ir.operators.rows import Softmax
from stages.ir.operators.windows import Pool2D
from stages.lower.streaming.row_places import fitted, moved, source_rows
from stages.lower.streaming.row_window import RowWindow

_BY_PIXEL = (Concatenation, Activation, Softmax, WideSoftmax, NearestSoftmax, FloatSoftmax)
_BY_ROWS = (Conv2D, DepthwiseConv2D, Pool2D, Float, Move, ResizeBilinear, *_BY_PIXEL)


def row_window(view: LayerView) -> RowWindow | None:
    """Return the window of a layer that can run by rows; None if it needs whole images."""
    if _is_global(view):
        return RowWindow(accumulates=True)
    if why_not_by_rows(view):
        return None
    op, x = view.op, view.inputs[0]
    if isinstance(op, Float) and op.rows is not None:
        return RowWindow(op.rows.size, op.rows.stride, op.rows.padding)
    if (places := source_rows(view)) is not None:
        return fitted(places, x.shape[1])
    if isinstance(op, Move):
        return moved(view)
    if isinstance(op, Conv2D | DepthwiseConv2D):
        size = (op.kernel[0] - 1) * op.dilation[0] + 1
        return RowWindow(size, op.stride[0], op.padding[0], op.input_zero_point)
    if isinstance(op, Pool2D):
        lowest = 0 if x.dtype == "uint8" else -(2 ** (8 * ITEM_BYTES[x.dtype] - 1))
        return RowWindow(op.kernel[0], op.stride[0], op.padding[0], lowest)
    return RowWindow()


def why_not_by_rows(view: LayerView) -> str:
    """Return why a layer cannot run by rows, '' if it can."""
    op = view.op
    if _is_global(view):
        return ""
    if len(view.outputs) != 1 or view.layer.state:
        return f"{view.layer.kind} has state or several outputs"
    if isinstance(op, Float) and op.rows is None:
        return f"{view.layer.kind} of {view.inputs[0].dtype} needs whole tensors"
    if not (isinstance(op, _BY_ROWS) or op.by_element):
        return f"{view.layer.kind} needs whole tensors"
    images = [tensor for tensor in (*view.inputs, *view.outputs) if not tensor.constant]
    if reason := next(filter(None, map(_why_not_image, images)), ""):
        return reason
    if isinstance(op, Float | Move | ResizeBilinear):
        planes = any(tensor.layout == "NCHW" for tensor in images)
        if planes:
            return f"{view.layer.kind} of {view.inputs[0].dtype} in NCHW"
        return f"{view.layer.kind} does not keep rows" if isinstance(op, Move) and moved(view) is None else ""
    y, readable = view.outputs[0], [tensor for tensor in view.inputs if not tensor.constant]
    if not readable:
        return f"{view.layer.kind} reads constants only"
    if isinstance(op, Conv2D | DepthwiseConv2D):
        return ""
    if isinstance(op, Pool2D):
        rows = (y.shape[1] - 1) * op.stride[0] + op.kernel[0] - op.padding[0]
        if op.padding[0] == 0 and rows <= view.inputs[0].shape[1]:
            return ""
        if op.op == "max_pool2d":
            return (
                "" if view.inputs[0].dtype in ("int8", "uint8") else "max_pool2d of 16 bits with padding above or below"
            )
        return "avg_pool2d with padding above or below divides by fewer elements there"
    if isinstance(op, Concatenation):
        joined = all(tensor.shape[:3] == y.shape[:3] for tensor in view.inputs) and len(readable) == len(view.inputs)
        return "" if joined else "concatenation of rows, or of constants"
    same = all(tensor.shape == y.shape for tensor in readable)
    flat = all((1, 1, 1, 1, *t.shape)[-4:][:2] == (1, 1) for t in view.inputs if t.constant)
    return "" if same and flat else f"{view.layer.kind} with tensors of different shapes"


def _is_global(view: LayerView) -> bool:
    """Return whether a layer reduces all rows and columns of one image of 8 bits."""
    if len(view.inputs) != 1 or _why_not_image(view.inputs[0]) or view.inputs[0].dtype not in ("int8", "uint8"):
        return False
    op, shape = view.op, view.inputs[0].shape
    if isinstance(op, Mean):
        return shape[1] > 1 and {axis % 4 for axis in op.axes if shape[axis] > 1} == {a for a in (1, 2) if shape[a] > 1}
    is_pool = isinstance(op, Pool2D) and op.op == "avg_pool2d"
    return is_pool and shape[1] > 1 and op.kernel == shape[1:3] and not any(op.padding)


def _why_not_image(tensor: Tensor) -> str:
    """Return why a tensor does not consist of rows, '' if it does."""
    if len(tensor.shape) != 4 or tensor.shape[0] != 1:
        return f"{tensor.name} has the shape {'x'.join(map(str, tensor.shape))}, which is not one image"
    if tensor.shape[1] < 1 or tensor.layout not in ("", "NHWC", "NCHW") or tensor.state or tensor.alias_of is not None:
        return f"{tensor.name} is part of another tensor, state, or in blocks"
    return ""
