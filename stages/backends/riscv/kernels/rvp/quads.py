"""CONV_2D of few channels: four adjacent output bytes at a time, from rows in place."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import INT8_OFFSET, centred_weights, why_not_nhwc, why_not_sums, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import depth_of
from stages.backends.riscv.kernels.rvp.base import arithmetic, clip_word
from stages.backends.riscv.kernels.rvp.quad_lines import QUADS, QuadLines
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

MOST_WEIGHTS = 1 << 14  # bytes: words of a quad are repeated with zeros, for each byte and each lane
MOST_CHANNELS = 16  # of a group of the input, where outputs are not few: panels and strips share what they read


class Quads(Kernel):
    """Convolution of any window and stride on NHWC images, with groups of whole output quads.

    Weights are repeated for each byte of a word at which a window can begin.
    """

    name = "rvp.quads_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("quads.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        shape = why_not_types(view) or _why_not_shape(view) or _why_not_size(view, target.word_bits // 32)
        return shape or why_not_sums(depth_of(view), lambda: arithmetic(view, signed_activations=True, any_shift=True))

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        from stages.backends.riscv.kernels.rvp import packing, quad_packing

        constants = arithmetic(view, signed_activations=True, any_shift=True)
        lines = QuadLines.of(view, target.word_bits // 32)
        rows = centred_weights(view).astype(np.int8).reshape(-1, *view.op.kernel, lines.depth)
        if lines.exchanged:
            rows = rows.transpose(0, 2, 1, 3)
        offset = INT8_OFFSET[view.inputs[0].dtype]
        fields = lines.fields() | {
            "fill": view.op.input_zero_point - offset,
            "flip": 0x80 if offset else 0,
            "clip": clip_word(view),
        }
        quads = lines.quad_channels()
        return {
            "weights": quad_packing.quad_weights(rows, lines, quads),
            "params": packing.quad_params(
                constants.bias, constants.multiplier, constants.rounders, quads, target.word_bits
            ),
            "quads": np.array([(quad.start, quad.head, quad.full, quad.tail) for quad in lines.quads], np.int32),
            "layer": QUADS.of(fields),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.riscv.kernels.rvp.quads_tir import convolution

        return convolution(view, QuadLines.of(view, target.word_bits // 32))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return QuadLines.of(view, target.word_bits // 32).cost() * view.inputs[0].shape[0] + 200


def _why_not_shape(view: LayerView) -> str:
    op = view.op
    depth, units = op.in_channels // op.groups, op.out_channels // op.groups
    if op.groups > 1 and units % 4:
        return f"groups of {units} outputs; this kernel writes four at a time"
    if depth > MOST_CHANNELS and op.out_channels > 4:
        return f"{depth} input channels per group; the limit is {MOST_CHANNELS}, unless there are at most 4 outputs"
    weights = centred_weights(view)
    if weights.min() < -128 or weights.max() > 127:
        return "weights minus their zero point do not fit int8"
    return why_not_nhwc(view)


def _why_not_size(view: LayerView, lanes: int) -> str:
    size = QuadLines.of(view, lanes).weight_bytes()
    return f"the packed weights take {size} bytes; the limit is {MOST_WEIGHTS}" if size > MOST_WEIGHTS else ""
