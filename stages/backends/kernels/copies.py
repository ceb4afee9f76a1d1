"""Data movement as copies between strided views: the source of each region of the output."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from stages.backends.kernels.tir.strides import Axis, logical_strides, row_major, walk
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView, Tensor
from stages.ir.layers.tensor import ITEM_BYTES, storage_of

SLICES = ("slice", "strided_slice", "split")
RESHAPES = ("reshape", "squeeze")
BLOCKS = ("depth_to_space", "space_to_depth")

RUN_BYTES = 16
"""A run of at least so many bytes is left to memcpy."""


@dataclass(frozen=True)
class Copy:
    """Copy of input `source`: both offsets, in elements, and axes with (output, input) strides."""

    source: int
    target_offset: int
    source_offset: int
    axes: tuple[Axis, ...]

    def is_run(self, item_bytes: int) -> bool:
        """Return whether a call of memcpy pays for the innermost axis."""
        run = self.axes[-1]
        return run.strides == (1, 1) and run.extent * item_bytes >= RUN_BYTES

    def word_bytes(self, item_bytes: int, target: Target) -> int:
        """Return the bytes of the largest word that can copy the innermost axis, 0 if none can."""
        run = self.axes[-1]
        strides = [stride for axis in self.axes[:-1] for stride in axis.strides]
        if run.strides != (1, 1) or any(stride < 0 for stride in strides):
            return 0
        steps = [run.extent, self.target_offset, self.source_offset, *strides]
        return next((n for n in (target.word_bits // 8, 4) if all(step * item_bytes % n == 0 for step in steps)), 0)


def copy_of(view: LayerView) -> Copy:
    """Return a Move as a copy. Not for a resize or a change of layout."""
    x, y, params = view.inputs[0], view.outputs[0], view.op.params
    into, out_of = logical_strides(y), logical_strides(x)
    kind = view.op.kind
    if kind == "transpose":
        return _copy(y.shape, into, [out_of[axis] for axis in params["permutation"]])
    if kind in BLOCKS:
        return _copy_of_blocks(view)
    if kind == "pad":
        start = sum(n * stride for n, stride in zip(params["before"], into, strict=True))
        return _copy(x.shape, into, out_of, target_offset=start)
    if kind in SLICES:
        begin, stride, size = params["begin"], params["stride"], params["size"]
        start = sum(n * step for n, step in zip(begin, out_of, strict=True))
        steps = [n * step for n, step in zip(stride, out_of, strict=True)]
        return _copy(size, _without_dropped(size, y), steps, source_offset=start)
    if is_permuted(y):
        return _copy(y.shape, into, row_major(y.shape))
    return _copy(x.shape, row_major(x.shape), out_of)


def _copy_of_blocks(view: LayerView) -> Copy:
    """Return depth_to_space or space_to_depth as a copy.

    Axes: batch, rows of blocks, rows in a block, columns of blocks, columns in a block, channels.
    """
    x, y, (rows, columns) = view.inputs[0], view.outputs[0], view.op.params["block"]
    deep, wide = (x, y) if view.op.kind == "depth_to_space" else (y, x)
    (batch, height, width, _), channels = deep.shape, wide.shape[3]
    n, h, w, c = logical_strides(deep)
    apart = (n, h, c * columns * channels, w, c * channels, c)
    n, h, w, c = logical_strides(wide)
    together = (n, h * rows, h, w * columns, w, c)
    into, out_of = (together, apart) if wide is y else (apart, together)
    return _copy((batch, height, rows, width, columns, channels), into, out_of)


def whole_of(view: LayerView) -> Copy:
    """Return the copy of the whole input in memory order."""
    return Copy(0, 0, 0, (Axis(view.outputs[0].elements, (1, 1)),))


def slide_of(view: LayerView) -> Copy:
    """Return the copy of a slide, within its state."""
    (state,), op = view.states, view.op
    row = prod(state.shape[op.axis + 1 :])
    window = row * state.shape[op.axis]
    shape = (prod(state.shape[: op.axis]), op.rows * row)
    return _copy(shape, (window, 1), (window, 1), target_offset=op.target * row, source_offset=op.source * row)


def why_not_ascending(view: LayerView) -> str:
    """Return why an ascending copy overwrites rows before they are read, '' if it does not."""
    op = view.op
    return "rows move to the end of the window, over each other" if op.source < op.target < op.source + op.rows else ""


def relayouts(x: Tensor, y: Tensor) -> list[Copy]:
    """Return the copies that change the layout of x: several if blocks do not divide an axis.

    Each axis is split at the steps of both layouts, so that each piece has a constant stride in both:

        20 channels, NHWC to NCHW16c:  one block of 16, at channel 0; 4 channels of the next, at channel 16
    """
    axes = [_pieces(size, steps) for size, steps in zip(x.shape, _steps(x, y), strict=True)]
    copies = []
    for pieces in product(*axes):
        start = [begin for begin, _ in pieces]
        along = [(axis, step, extent) for axis, (_, digits) in enumerate(pieces) for step, extent in digits]
        copies.append(
            _copy(
                [extent for _, _, extent in along],
                [_stride(y, axis, step) for axis, step, _ in along],
                [_stride(x, axis, step) for axis, step, _ in along],
                target_offset=y.layout.offset(start, y.shape),
                source_offset=x.layout.offset(start, x.shape),
            )
        )
    return copies


def why_not_relayouts(x: Tensor, y: Tensor) -> str:
    """Return why `relayouts` cannot express the change of layout, '' if it can."""
    if x.layout.bits or y.layout.bits:
        return "elements smaller than a byte"
    if any(larger % smaller for steps in _steps(x, y) for smaller, larger in pairwise(steps)):
        return f"blocks of {x.layout} and {y.layout} do not divide each other"
    return ""


def _steps(x: Tensor, y: Tensor) -> list[list[int]]:
    """Return for each axis the steps at which one of the layouts splits it, in rising order."""
    digits = (*x.layout.digits(x.shape), *y.layout.digits(y.shape))
    return [sorted({digit.step for digit in digits if digit.axis == axis}) for axis in range(len(x.shape))]


def _pieces(size: int, steps: Sequence[int]) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return (start, [(step, count)]) of the pieces of an axis: whole blocks, then the rest."""
    *smaller, step = steps
    blocks, pieces = size // step, []
    if blocks:
        inner = [(fine, coarse // fine) for fine, coarse in pairwise(steps)]
        pieces.append((0, [*inner, (step, blocks)]))
    if size % step:
        pieces += [(blocks * step + begin, digits) for begin, digits in _pieces(size % step, smaller)]
    return pieces


def _stride(tensor: Tensor, axis: int, step: int) -> int:
    """Return the elements in memory for `step` along an axis, within one piece of it."""
    digits = [digit for digit in tensor.layout.digits(tensor.shape) if digit.axis == axis and digit.step <= step]
    nearest = max(digits, key=lambda digit: digit.step)
    return nearest.stride * (step // nearest.step)


def parts(view: LayerView) -> list[Copy]:
    """Return the copies of a concatenation.

    Inputs that already lie in the output's memory need no copy.
    """
    y = view.outputs[0]
    into = logical_strides(y)
    axis = view.op.axis % len(into)
    root, place_of_y = storage_of(view.tensors, y.name)
    copies, start = [], 0
    for number, x in enumerate(view.inputs):
        offset = start * into[axis]
        if storage_of(view.tensors, x.name) != (root, place_of_y + offset * ITEM_BYTES[y.dtype]):
            copies.append(_copy(x.shape, into, logical_strides(x), source=number, target_offset=offset))
        start += x.shape[axis]
    return copies


def _copy(
    shape: Sequence[int],
    into: Sequence[int],
    out_of: Sequence[int],
    *,
    source: int = 0,
    target_offset: int = 0,
    source_offset: int = 0,
) -> Copy:
    return Copy(source, target_offset, source_offset, tuple(walk(shape, into, out_of)))


def _without_dropped(size: Sequence[int], y: Tensor) -> list[int]:
    """Return the strides of a slice's output, which may lack axes of one element."""
    strides = iter([step for n, step in zip(y.shape, logical_strides(y), strict=True) if n > 1])
    return [next(strides) if n > 1 else 0 for n in size]


def is_permuted(tensor: Tensor) -> bool:
    """Return whether a tensor's elements lie in another order than the logical one."""
    logical = row_major(tensor.shape)
    return any(n > 1 and a != b for n, a, b in zip(tensor.shape, logical, logical_strides(tensor), strict=True))
