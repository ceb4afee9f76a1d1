"""CONV_2D whose output is one pixel: dot products of rows of each group with the lanes along the depth."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import lies_planar, why_not_sums, why_not_types
from stages.kernels.kernel import Kernel
from stages.kernels.matrix import columns_of, depth_of
from stages.kernels.rvp.base import arithmetic, clip_word
from stages.kernels.rvp.gathered_rows import LAYER, Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target


def rows_of_groups(view: LayerView, register: int) -> Rows:
    """Of a layer as `inside` has it."""
    counts = (count for count in range(1, view.op.groups + 1) if view.op.groups % count == 0)
    made = (_rows(view, count) for count in counts)
    return min(made, key=lambda rows: rows.cost(register, view.op.weight_zero_point))


def _rows(view: LayerView, merged: int) -> Rows:
    op, x = view.op, view.inputs[0]
    channels = op.in_channels // op.groups * merged
    (rows, taps), row_step = op.kernel, op.dilation[0] * x.shape[2] * op.in_channels
    tap_step, run, step = op.dilation[1] * op.in_channels, channels, channels
    if lies_planar(x):  # the planes of a group are one piece
        rows, taps, run = 1, 1, prod(op.kernel) * channels
        step = run
    if taps == 1 or tap_step == run:
        taps, run = 1, taps * run
    if taps == 1 and (rows == 1 or row_step == run):
        rows, run = 1, rows * run
    row_step, tap_step = row_step if rows > 1 else run, tap_step if taps > 1 else run
    return Rows(
        op.groups // merged, merged, rows, row_step, taps, tap_step, run, step, columns_of(view) // op.groups * merged
    )


def inside(view: LayerView) -> LayerView:
    """A layer of one output pixel with what of its window lies inside the image; others as they are.

    What lies outside adds nothing to sums. The padding that is left is the window's place: none, or less than none.
    """
    op, x = view.op, view.inputs[0]
    if op.op != "conv2d" or view.outputs[0].shape[1:3] != (1, 1):
        return view
    taken, padding = [], []
    for axis in (0, 1):
        places = [k * op.dilation[axis] - op.padding[axis] for k in range(op.kernel[axis])]
        inner = [k for k, place in enumerate(places) if 0 <= place < x.shape[1 + axis]]
        if not inner:
            return view
        taken.append(slice(inner[0], inner[-1] + 1))
        padding.append(-places[inner[0]])
    kernel = tuple(part.stop - part.start for part in taken)
    key = view.layer.constants["weights"]
    weights = view.arrays[key].transpose([op.kernel_layout.index(axis) for axis in "OHWI"])[:, taken[0], taken[1]]
    changes = {
        "kernel": kernel,
        "stride": (1, 1),
        "dilation": tuple(1 if kernel[axis] == 1 else op.dilation[axis] for axis in (0, 1)),
        "padding": (*padding, *padding),
        "kernel_layout": "OHWI",
    }
    layer = view.layer.model_copy(update={"op": op.model_copy(update=changes)})
    return replace(view, layer=layer, arrays={**view.arrays, key: weights})


class OnePixel(Kernel):
    """Any window and groups on NHWC images, on NCHW ones those that are the image.

    A group's row is gathered into scratch, or read where it is one piece; nothing is computed for what lies outside of
    the image, or for units that are not there.
    """

    name = "rvp.one_pixel_s8"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    sources = ("gathered_rows.c", "dot_rows.S")
    headers: ClassVar[tuple[str, ...]] = ("gathered_rows.h",)

    def seen(self, view: LayerView) -> LayerView:
        return inside(super().seen(view))

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        shape = why_not_types(view) or _why_not_shape(view)
        return shape or why_not_sums(depth_of(view), lambda: arithmetic(view, signed_activations=False))

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, np.ndarray]:
        import numpy as np

        from stages.kernels.rvp import packing

        op, x, bits = view.op, view.inputs[0], target.word_bits
        made, rows = arithmetic(view, signed_activations=False), rows_of_groups(view, bits // 8)
        weights = made.weights.astype(np.int8).reshape(op.out_channels, *op.kernel, -1)
        taps = prod(op.kernel)
        if lies_planar(x):
            weights, taps = weights.transpose(0, 3, 1, 2), 1
        flat = packing.on_diagonals(
            weights.reshape(rows.products, rows.units, -1), made.weight_zero_point, rows.merged, taps
        )
        parts = [slice(first, first + rows.units) for first in range(0, op.out_channels, rows.units)]
        start = (-op.padding[0] * x.shape[2] - op.padding[1]) * op.in_channels
        return {
            "weights": np.stack([packing.rows_weights(part, made.weight_zero_point, bits) for part in flat]),
            "params": np.stack(
                [
                    packing.rows_params(made.bias[own], made.multiplier[own], made.rounders.part(own), bits)
                    for own in parts
                ]
            ),
            "layer": rows.layer(bits // 8, start, clip_word(view), made.weight_zero_point),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.rvp.one_pixel_tir import convolution

        return convolution(view, rows_of_groups(view, target.word_bits // 8), target.word_bits // 32, LAYER)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        register = target.word_bits // 8
        return view.inputs[0].shape[0] * rows_of_groups(view, register).cost(register, view.op.weight_zero_point) + 50.0


def _why_not_shape(view: LayerView) -> str:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    if y.shape[1:3] != (1, 1):
        return f"an output of {y.shape[1]}x{y.shape[2]} pixels; this kernel is for one"
    if any(place > 0 for place in op.padding):
        return "a window outside of the image"
    if lies_planar(x) and op.kernel != x.shape[1:3]:
        return "an NCHW input that the window is not"
    return ""
