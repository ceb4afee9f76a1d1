"""DEPTHWISE_CONV_2D with a single window position inside the image, as before a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.cortex_m.kernels.mve.base import Arithmetic, MveKernel, arithmetic
from stages.backends.cortex_m.kernels.mve.lines import parts_of
from stages.backends.cortex_m.kernels.mve.requantize_tir import requantize
from stages.backends.kernels.eight_bit import INT8_OFFSET, SUFFIX, centred_weights, why_not_centred_types, why_not_sums
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np, npt

BLOCK = 4  # channels
CHUNK = 8  # taps of a vector
FIELDS = Structure.of_header("mve_whole", __file__, "whole.h")  # of whole.h


def chunks_of(view: LayerView) -> int:
    """Return the chunks of taps of the window."""
    return -(-prod(view.op.kernel) // CHUNK)


def block_count(view: LayerView) -> int:
    """Return the channel blocks; the last one may overlap the one before it."""
    return -(-int(view.op.in_channels) // BLOCK)


def offsets(view: LayerView) -> npt.NDArray[np.int64]:
    """Return int64 [taps]: bytes from the first pixel of the window to each tap."""
    op, (_, _, width, channels) = view.op, view.inputs[0].shape
    rows, columns = (np.arange(op.kernel[axis]) * op.dilation[axis] for axis in (0, 1))
    reach: npt.NDArray[np.int64] = (rows[:, None] * width + columns).reshape(-1) * channels
    return reach


MOST_OFFSET = 65535  # which 16 bits hold


class DepthwiseWhole(MveKernel):
    """Depthwise convolution that reads every element once, in place."""

    name = "mve.depthwise_whole_s8"
    row_alignment = 1
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("whole.S",)

    def why_not_operator(self, view: LayerView) -> str:
        op, y = view.op, view.outputs[0]
        if bad := why_not_centred_types(view):
            return bad
        if y.shape[1:3] != (1, 1) or op.padding != (0, 0, 0, 0):
            return "the window has several positions or leaves the image"
        if op.depth_multiplier != 1:
            return f"a depth multiplier of {op.depth_multiplier} is not supported"
        if op.in_channels < BLOCK:
            return f"{op.in_channels} channels; this kernel needs at least {BLOCK}"
        if parts_of(view) > 1:
            return "weights minus their zero point do not fit int8"
        if offsets(view).max() > MOST_OFFSET:
            return f"the window spans more than {MOST_OFFSET} bytes"
        return why_not_sums(prod(op.kernel), lambda: whole_arithmetic(view))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, x, constants = view.op, view.inputs[0], whole_arithmetic(view)
        taps, chunks = prod(op.kernel), chunks_of(view)
        centred = centred_weights(view)
        words = constants.params.astype(np.int64)
        words[0] -= INT8_OFFSET[x.dtype] * centred.astype(np.int64).sum(1)  # the sums are of the bytes as they are
        first = np.minimum(np.arange(block_count(view)) * BLOCK, op.in_channels - BLOCK)
        numbers = first[:, None] + np.arange(BLOCK)
        padded = np.pad(centred, ((0, 0), (0, chunks * CHUNK - taps))).astype(np.int8)
        weights = padded[numbers].reshape(-1, BLOCK, chunks, CHUNK).transpose(0, 2, 1, 3)
        reach = np.pad(offsets(view), (0, chunks * CHUNK - taps)).astype(np.uint16)
        fields = {
            "channels": op.in_channels,
            "chunks": chunks,
            "zero_point": op.output_zero_point,
            "low": op.act_min,
            "high": op.act_max,
        }
        return {
            "params": np.ascontiguousarray(words.astype(np.int32)[:, numbers].swapaxes(0, 1)),
            "weights": np.ascontiguousarray(weights),
            "offsets": reach,
            "fields": FIELDS.of(fields),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return the layer as a loop over images."""
        function = f"mve_depthwise_whole_{SUFFIX[view.inputs[0].dtype]}"
        op, x, y = view.op, view.inputs[0], view.outputs[0]
        channels, blocks, chunks = op.in_channels, block_count(view), chunks_of(view)

        def meaning(b: Any) -> None:
            with loop(("block", blocks), ("lane", BLOCK)) as (block, lane):
                c = T.min(block * BLOCK, channels - BLOCK) + lane
                store(b.acc, b.params[block, 0, lane], 0)
                with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                    tap = ky * op.kernel[1] + kx
                    weight = widen(b.weights[block, T.truncdiv(tap, CHUNK), lane, T.truncmod(tap, CHUNK)])
                    value = widen(b.x[ky * op.dilation[0], kx * op.dilation[1], c])
                    store(b.acc, b.acc[0] + value * weight, 0)
                scaled = requantize(b.acc[0], b.params[block, 1, lane], b.params[block, 2, lane], "lowered")
                store(b.y, output(view, scaled), 0, 0, c)

        operands = (
            Operand("x", x.shape[1:], x.dtype),
            Operand("params", (blocks, 3, BLOCK), "int32"),
            Operand("weights", (blocks, chunks, BLOCK, CHUNK), "int8"),
            Operand("offsets", (chunks * CHUNK,), "uint16"),
            Operand("fields", FIELDS.shape, "int32"),
            Operand("y", y.shape[1:], y.dtype, "w"),
            accumulator(),
        )
        arguments = lambda b: [b.x, b.params, b.weights, b.offsets, b.y, b.fields]  # noqa: E731
        image = Block("image", operands, meaning, function, arguments)
        return over_images("depthwise_conv2d", image, x.shape[0])

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from the code: 14 per eight taps of a block, 36 overhead."""
        return float(view.inputs[0].shape[0] * (block_count(view) * (14 * chunks_of(view) + 36) + 60))


def whole_arithmetic(view: LayerView) -> Arithmetic:
    """Return the layer's constants with weights as [channels, (ky, kx)], in mode lowered."""
    return arithmetic(view, lowered=True, shifted=False)
