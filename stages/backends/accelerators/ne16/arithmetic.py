"""Requantization of NE16: three modes, and the constants of a channel for each.

    core     the engine adds the bias and writes 32-bit sums; the core requantizes them (hwlib/), exactly
    floor    the engine's arithmetic: ((sum * scale + bias) >> shift), saturated: the layer's rounding `floor`
    tflite   the extension's arithmetic: exact

The constants of some output channels are one block in L1. Each part is aligned to 4 bytes:

    parameters   tflite: zero point, minimum, maximum, and the parameters of a residual addition
    bias         int32 each: bias with the terms of zero points, added to sums (floor: to scaled sums)
    scale        floor: uint16 each; tflite: int32 multipliers; core: 1, one byte each
    shift        one byte each; core: the core's exponents
    multiplier   core: int32 each, then the core's rounders (stages/backends/kernels/rounding.py)
    weights      bit planes
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from stages.backends.accelerators.floor_rounding import MultiplierLimits, ScaleConstants, Sum
from stages.backends.accelerators.ne16 import extension
from stages.backends.accelerators.ne16.job import Mode
from stages.backends.accelerators.ne16.mapping import by_transfers
from stages.backends.accelerators.ne16.packing import pack, packed_bytes
from stages.backends.accelerators.ne16.weights import LEAST_BITS, Weights, folded_bias
from stages.backends.accelerators.tiles import Span
from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.products import Conv2D

How = Literal["core", "floor", "tflite"]

LIMITS = MultiplierLimits(multiplier=0xFFFF, shift=31, bits=32)
SCALE_BITS: Mapping[How, int] = {"core": 8, "floor": 16, "tflite": 32}
_EXACT_ONE = (1 << 30, 1)  # multiplier and shift of 1


@dataclass(frozen=True)
class Block:
    """Offsets of a block's sections and its size, in bytes."""

    parameters: int
    bias: int
    scale: int
    shift: int
    multiplier: int
    rounder: int
    weights: int
    bytes: int


def block(how: How, mode: Mode, ki: int, channels: int, bits: int, *, residual: bool = False) -> Block:
    """Return the offsets of a block of `channels` output channels."""
    sizes = {
        "parameters": (extension.RESIDUAL_BLOCK_BYTES if residual else extension.BLOCK_BYTES) if how == "tflite" else 0,
        "bias": 4 * channels,
        "multiplier": 4 * channels if how == "core" else 0,
        "rounder": 4 * channels if how == "core" else 0,
        "scale": SCALE_BITS[how] // 8 * channels,
        "shift": channels,
    }
    offsets, at = {}, 0
    for name, size in sizes.items():
        offsets[name] = at
        at += size
    weights = _words(at)
    ko = ki if mode == "depthwise3x3" else channels
    return Block(**offsets, weights=weights, bytes=weights + packed_bytes(mode, ki, ko, bits))


def contents(
    view: LayerView, how: How, mode: Mode, channels: Span, weights: Weights, rounders: Array | None = None
) -> Array:
    """Return the block of a layer with weights, uint8.

    `rounders` are by output channel, for requantization by the core.
    """
    some, count = slice(channels.first, channels.end), len(weights.rows)
    rows = weights.rows[some]
    planes = pack(_planes(view, mode, rows), mode, weights.bits, weights.offset)
    multiplier, shift = (_of_channels(view, role, count)[some] for role in ("multiplier", "shift"))
    bias = folded_bias(view, weights)[some]
    if how == "core":
        numbers = np.stack([bias, multiplier, np.zeros_like(bias) if rounders is None else rounders[some]])
        return _joined(_int32(numbers) + bytes([1] * len(bias)) + _int8(shift), planes)
    if how == "floor":
        zero_point = np.int64(view.op.output_zero_point)
        bias = bias * multiplier + _of_channels(view, "offset", count)[some] + (zero_point << shift)
        return _joined(_int32(bias) + multiplier.astype("<u2").tobytes() + _int8(shift), planes)
    op = view.op
    head = extension.Parameters(op.output_zero_point, op.act_min, op.act_max).block()
    return _joined(head + _int32(bias) + _int32(multiplier) + _int8(shift), planes)


def _joined(numbers: bytes, planes: bytes) -> Array:
    return np.frombuffer(numbers + bytes(_words(len(numbers)) - len(numbers)) + planes, np.uint8)


def _int32(values: Array) -> bytes:
    """Return values modulo 2^32, as the engine's sums."""
    return values.astype(np.int64).astype("<u4").tobytes()


def _int8(values: Array) -> bytes:
    return values.astype(np.int8).tobytes()


def _planes(view: LayerView, mode: Mode, rows: Array) -> Array:
    """Return rows of weights in the order of `pack`: OHWI, or HWC."""
    op = view.op
    if mode == "depthwise3x3":
        return np.ascontiguousarray(rows.T).reshape(3, 3, len(rows))
    if mode == "conv3x3":
        return rows.reshape(len(rows), 3, 3, op.in_channels)
    if isinstance(op, Conv2D) and not by_transfers(view):  # the core gathers windows column by column
        rows = rows.reshape(len(rows), *op.kernel, op.in_channels).transpose(0, 2, 1, 3)
    return rows.reshape(len(rows), 1, 1, -1)


def _of_channels(view: LayerView, role: str, count: int) -> Array:
    """Return int64[output channels]. A scalar is repeated for all."""
    values = view.constant(role).astype(np.int64).reshape(-1)
    return np.asarray(np.broadcast_to(values, (count,)))


def _words(count: int) -> int:
    return -(-count // 4) * 4


def with_floor(view: LayerView, rounding: ScaleConstants | Sum) -> tuple[Any, dict[str, Array]]:
    """Return the layer's operator and constants with the rounding `floor`."""
    if isinstance(rounding, Sum):
        fields = {
            "rounding": "floor",
            "left_shift": 0,
            "multipliers": rounding.weights,
            "shifts": (0, 0),
            "output_multiplier": rounding.multiplier,
            "output_offset": rounding.offset,
            "output_shift": rounding.shift,
        }
        return view.op.model_copy(update=fields), {}
    constants = {role: getattr(rounding, role).astype(np.int32) for role in ("multiplier", "offset", "shift")}
    return view.op.model_copy(update={"rounding": "floor"}), constants


def pair_contents(view: LayerView, how: How) -> Array:
    """Return the block of an ADD or SUB: 16 output channels.

    Its weights are the identity, or one value per tensor.
    """
    op, none, ones = view.op, np.zeros(16, np.int64), np.identity(16, np.int64)
    if how == "floor":
        first, second = pair_weights(view)
        folded = -(op.zero_points[0] * first + op.zero_points[1] * second) * op.output_multiplier
        bias = none + folded + op.output_offset + (op.output_zero_point << op.output_shift)
        planes = _pair_planes(view, np.concatenate([first * ones, second * ones], axis=1))
        scale = (none + op.output_multiplier).astype("<u2").tobytes()
        return _joined(_int32(bias) + scale + _int8(none + op.output_shift), planes)
    residual = extension.Residual(
        zero_point=op.zero_points[1],
        own_multiplier=op.multipliers[0],
        own_shift=op.shifts[0],
        multiplier=op.multipliers[1],
        shift=op.shifts[1],
        total_multiplier=op.output_multiplier,
        total_shift=op.output_shift,
        output_zero_point=op.output_zero_point,
        minimum=op.act_min,
        maximum=op.act_max,
    )
    # Values are unchanged before the addition: less the zero point, times 1, plus the zero point.
    low = -INT8_OFFSET["uint8"] if view.inputs[0].dtype == "int8" else 0
    head = extension.Parameters(op.zero_points[0], low, low + 255, residual).block()
    multiplier, shift = _EXACT_ONE
    numbers = _int32(none - op.zero_points[0]) + _int32(none + multiplier) + _int8(none + shift)
    return _joined(head + numbers, _pair_planes(view, ones))


def pair_weights(view: LayerView) -> tuple[int, int]:
    """Return the input factors of an ADD or SUB with the rounding `floor`, else the identity."""
    op = view.op
    if op.rounding != "floor":
        return 1, 0
    return op.multipliers[0], op.sign * op.multipliers[1]


def pair_bits(view: LayerView) -> tuple[int, int]:
    """Return bits and offset of the weights of an ADD or SUB."""
    weights = pair_weights(view)
    offset = min(0, *weights)
    return max((max(0, *weights) - offset).bit_length(), LEAST_BITS), offset


def _pair_planes(view: LayerView, rows: Array) -> bytes:
    bits, offset = pair_bits(view)
    return pack(rows.reshape(len(rows), 1, 1, -1), "conv1x1", bits, offset)
