"""Calls of the word-copy functions: copies as rows of one function, pixels of a resize."""

from dataclasses import dataclass

from stages.backends.kernels.copies import Copy
from stages.backends.kernels.tir.strides import Axis
from stages.ir.graph import LayerView
from stages.ir.layers.tensor import ITEM_BYTES


@dataclass(frozen=True)
class Calls:
    """A copy: several calls of one function, each over rows and columns.

    Strides are (output, input).

    is_run  columns are adjacent in the output and in the input; otherwise they are single bytes
    """

    outer: tuple[Axis, ...]
    rows: Axis
    columns: Axis
    is_run: bool


def calls_of(copy: Copy) -> Calls:
    """Return runs in rows along the longest other axis, or columns and rows of single bytes.

    A copy along one axis has runs of one element.
    """
    others, last = copy.axes[:-1], copy.axes[-1]
    if not others and last.strides != (1, 1):
        return Calls((), last, Axis(1, (1, 1)), is_run=True)
    is_run = last.strides == (1, 1) or last.extent == 1
    order = sorted(others, key=lambda axis: (not is_run and axis.strides[1] == 1, axis.extent))
    other = order[-1] if order else Axis(1, (last.extent, last.extent))
    outer = tuple(axis for axis in others if axis is not other)
    if is_run:
        return Calls(outer, other, last, is_run=True)
    if last.strides[0] == other.strides[1] == 1:
        return Calls(outer, last, other, is_run=False)
    shorter, longer = sorted((last, other), key=lambda axis: axis.extent)
    return Calls(outer, shorter, longer, is_run=False)


def resized(view: LayerView) -> tuple[int, int, int, int]:
    """Return the images of a resize: number, height, width, bytes per pixel.

    A plane is an image.
    """
    y = view.outputs[0]
    batch, height, width, channels = y.shape
    item_bytes = ITEM_BYTES[y.dtype]
    if y.layout == "NCHW":
        return batch * channels, height, width, item_bytes
    return batch, height, width, channels * item_bytes
