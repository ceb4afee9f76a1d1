"""Walks over tensors as few nested loops with strides. Does not import tvm.

A walk visits the elements of an index space and knows, for each of several buffers, how far one step along an axis goes
in memory. Axes of one element are dropped; neighbours that are one run in every buffer become one axis:

    NHWC (2, 4, 4, 3) to NHWC:  one loop of 96
    NHWC (2, 4, 4, 3) to NCHW:  loops of 2, 3 and 16
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from stages.ir.graph import LayerView, Tensor


@dataclass(frozen=True)
class Axis:
    """`extent` steps. `strides` are elements in memory per step, one for each buffer."""

    extent: int
    strides: tuple[int, ...]


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return elements in memory per step along each axis of a dense array."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides)) if shape else ()


def logical_strides(tensor: Tensor) -> tuple[int, ...]:
    """Return elements in memory per step along each logical axis, in the tensor's layout."""
    strides = [0] * len(tensor.shape)
    for axis, stride in zip(tensor.permutation, row_major(tensor.physical_shape), strict=True):
        strides[axis] = stride
    return tuple(strides)


def broadcast_strides(tensor: Tensor, shape: Sequence[int]) -> tuple[int, ...]:
    """Return strides of `tensor` along the axes of a broadcast `shape`, 0 where it repeats."""
    lead = len(shape) - len(tensor.shape)
    tensor_strides = logical_strides(tensor)
    return (0,) * lead + tuple(0 if n == 1 else tensor_strides[i] for i, n in enumerate(tensor.shape))


def walk(shape: Sequence[int], *strides: Sequence[int]) -> list[Axis]:
    """Return the axes to loop over, outermost first, in the memory order of the first buffer.

    Returns at least one axis; the last one is the longest run in the first buffer.
    """
    axes = [Axis(n, tuple(s[i] for s in strides)) for i, n in enumerate(shape) if n > 1]
    axes.sort(key=lambda axis: -abs(axis.strides[0]))
    merged: list[Axis] = []
    for axis in axes:
        if merged and all(a == b * axis.extent for a, b in zip(merged[-1].strides, axis.strides, strict=True)):
            merged[-1] = Axis(merged[-1].extent * axis.extent, axis.strides)
        else:
            merged.append(axis)
    return merged or [Axis(1, (1,) * len(strides))]


def offset(variables: Sequence[Any], axes: Sequence[Axis], buffer: int) -> Any:
    """Return the offset in a buffer for variables of all axes of a walk, or all but the last."""
    return sum((v * axis.strides[buffer] for v, axis in zip(variables, axes, strict=False)), start=0)


@dataclass(frozen=True)
class Broadcast:
    """Two broadcast inputs as calls of `rows.extent` rows of `run.extent` elements.

    Rows are adjacent in the output. Strides are for the output, x0 and x1. Along a run, an input that repeats one
    value has stride 0.

    outer  axes around the calls
    """

    outer: tuple[Axis, ...]
    rows: Axis
    run: Axis

    @property
    def calls(self) -> int:
        """Number of calls."""
        return prod(axis.extent for axis in self.outer)


def broadcast(view: LayerView, first: int = 0) -> Broadcast:
    """Return a layer's two inputs as calls of rows and runs. x0 is input `first`."""
    out = view.outputs[0]
    inputs = (view.inputs[first], view.inputs[1 - first])
    axes = walk(out.shape, logical_strides(out), *(broadcast_strides(x, out.shape) for x in inputs))
    rows = axes[-2] if len(axes) > 1 else Axis(1, (axes[-1].extent, 0, 0))
    return Broadcast(tuple(axes[:-2]), rows, axes[-1])


def reduced_axes(view: LayerView) -> tuple[list[Axis], list[Axis]]:
    """Return the kept axes, with strides of (output, input), and the reduced axes, of (input,)."""
    x, y = view.inputs[0], view.outputs[0]
    summed = {axis % len(x.shape) for axis in view.op.axes}
    kept = [axis for axis in range(len(x.shape)) if axis not in summed]
    steps = logical_strides(x)
    out = logical_strides(y)
    if len(y.shape) == len(x.shape):  # keep_dims: summed axes are there with one element
        out = tuple(out[axis] for axis in kept)
    inputs = [steps[axis] for axis in kept]
    stays = walk([x.shape[axis] for axis in kept], out, inputs) if kept else walk([], (), ())
    return stays, walk([x.shape[axis] for axis in sorted(summed)], [steps[axis] for axis in sorted(summed)])


def two_axes(axes: list[Axis]) -> tuple[Axis, Axis]:
    """Return one or two axes as an outer and an inner one."""
    return (axes[0], axes[1]) if len(axes) == 2 else (Axis(1, (0,)), axes[0])
