"""Grouped CONV_2D with two input channels per group: two groups at a time."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.cortex_m.kernels.arm_dsp.base import arithmetic, clamps
from stages.backends.cortex_m.kernels.arm_dsp.packing import half_words
from stages.backends.kernels.eight_bit import SUFFIX, centred_weights, why_not_nhwc, why_not_sums, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import depth_of
from stages.backends.kernels.structure import Structure, sizes, taps
from stages.backends.kernels.tir.block import Function
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.support.lazy import np, npt

DEPTH = 2  # input channels of a group
FIELDS = Structure.of_header("arm_dsp_twos", __file__, "twos.h")


class Twos(Kernel):
    """Windows in place, clipped to the image: a word has the inputs of two groups.

    Up to two outputs of both groups are computed at a time.
    """

    name = "arm_dsp.twos_s8"
    row_alignment = 1
    estimate_error = 1.25
    calls = True
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("twos.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op = view.op
        if bad := why_not_types(view) or why_not_nhwc(view):
            return bad
        if op.groups == 1 or op.in_channels != DEPTH * op.groups:
            return f"{op.in_channels} channels in {op.groups} groups; this kernel is for {DEPTH} per group"
        return why_not_sums(depth_of(view), lambda: arithmetic(view))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        op, blocks = view.op, _words(view)
        zero = (-op.input_zero_point & 0xFFFF) * 0x10001
        fields = {
            **sizes(view),
            **taps(op),
            "images": view.inputs[0].shape[0],
            "blocks": len(blocks),
            "apart": op.out_channels // op.groups,
            "out_channels": op.out_channels,
            "zero": zero - (1 << 32) if zero >= 1 << 31 else zero,
            **clamps(view),
        }
        return {"weights": blocks, "fields": FIELDS.of(fields)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        x, y, blocks = view.inputs[0], view.outputs[0], _words(view)
        kind = f"{'two' if _at_once(view) == 2 else 'one'}_{SUFFIX[x.dtype]}"
        with Function("conv2d") as f:
            source, weights = f.input(0, x.shape, x.dtype), f.constant("weights", blocks.shape, "int32")
            fields, out = f.constant("fields", FIELDS.shape, "int32"), f.output(0, y.shape, y.dtype)
            f.call(f"arm_dsp_twos_{kind}", (source, "r"), (weights, "r"), (out, "w"), (fields, "r"))
        return f.lowering()

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts, with n outputs at once.

        9 + 2n per tap (1x1 and 3x3: 7 + 2n), 7 per row, 12 + 14n per block and 45 per pixel.
        """
        pixels, n = view.outputs[0].elements / view.op.out_channels, _at_once(view)
        tap = 2 * n + (7 if view.op.kernel in ((1, 1), (3, 3)) else 9)
        block = tap * prod(view.op.kernel) + 7 * view.op.kernel[0] + 12 + 14 * n
        return pixels * (len(_words(view)) * block + 45) + 60


def _at_once(view: LayerView) -> int:
    """Outputs of a group that are computed at once."""
    return min(2, int(view.op.out_channels // view.op.groups))


def _outputs(view: LayerView) -> npt.NDArray[np.int64]:
    """Return output channels, [blocks, 2 * outputs at once]: the first group's first.

    The last pair and the last block may overlap the one before.
    """
    op, n = view.op, _at_once(view)
    each = op.out_channels // op.groups
    groups = np.minimum(np.arange(0, op.groups, 2), op.groups - 2)[:, None, None, None] + np.arange(2)[:, None]
    within = np.minimum(np.arange(0, each, n), each - n)[:, None, None] + np.arange(n)
    numbers: npt.NDArray[np.int64] = groups * each + within
    return numbers.reshape(-1, 2 * n)


def _words(view: LayerView) -> npt.NDArray[np.int32]:
    """Return int32 [blocks, words] (twos.h)."""
    op, numbers = view.op, _outputs(view)
    first = numbers[:, :1]
    bias = view.constant("bias").reshape(-1) if view.has("bias") else np.zeros(op.out_channels, np.int32)
    weights = centred_weights(view).astype(np.int64).reshape(op.out_channels, prod(op.kernel), DEPTH)
    parts = [
        first // (op.out_channels // op.groups) * DEPTH,
        first,
        bias[numbers],
        half_words(weights)[numbers].transpose(0, 2, 1).reshape(len(numbers), -1),
        arithmetic(view).scale.scale[numbers].reshape(len(numbers), -1),
    ]
    return np.concatenate(parts, 1).astype(np.int32)
