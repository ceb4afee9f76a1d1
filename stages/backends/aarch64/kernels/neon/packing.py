"""Constants in the layouts that the NEON kernels read."""

from __future__ import annotations

from collections.abc import Sequence

from stages.backends.aarch64.kernels.neon.format import Format
from stages.backends.generic.kernels.generic import packing as generic
from stages.backends.kernels.eight_bit import INT8_OFFSET, weight_rows
from stages.ir.graph import LayerView
from stages.support.lazy import np


def flat_weights(view: LayerView) -> np.ndarray:
    """Return the weights as int8 [columns, depth], the depth as (ky, kx, input channel)."""
    return weight_rows(view, generic.signed_weights(view)[0])


def weights(flat: np.ndarray, layout: Format, depth: int) -> np.ndarray:
    """Pack weights into the blocks of `layout`, int8 []; row and column padding is 0."""
    parts = []
    for columns in layout.columns(len(flat)):
        for block in range(columns.blocks):
            first = columns.first + block * columns.used
            filled = np.zeros((columns.width, depth), np.int8)
            filled[: columns.used, : flat.shape[1]] = flat[first : first + columns.used]
            for start, count, size in layout.depths(depth):
                chunks = filled[:, start : start + count * size].reshape(columns.width, count, size)
                parts.append(chunks.transpose(1, 0, 2).reshape(-1))
    return np.concatenate(parts)


def params(view: LayerView, flat: np.ndarray, weight_zero_point: int, layout: Format) -> np.ndarray:
    """Return int32 [] per block: bias with zero point, multiplier, shift for the mode."""
    zero_point = view.op.input_zero_point - INT8_OFFSET[view.inputs[0].dtype]
    channels = generic.channels(view, flat, weight_zero_point, zero_point)
    if view.op.rounds_once:
        channels[:, 2] -= 31
    parts = []
    for columns in layout.columns(len(flat)):
        for block in range(columns.blocks):
            first = columns.first + block * columns.used
            filled = np.zeros((3, columns.width), np.int32)
            filled[2] = -1
            filled[:, : columns.used] = channels[first : first + columns.used].T
            parts.append(filled.reshape(-1))
    return np.concatenate(parts)


def structure(output: np.ndarray, fields: Sequence[int]) -> np.ndarray:
    """Return int8 []: the output constants followed by int32 fields."""
    return np.concatenate([output, np.array(fields, "<i4").view(np.int8)])


def has_low_pairs(flat: np.ndarray) -> bool:
    """Return whether weights k and k + 8 of a group of 16 are both -128.

    Two products of -128 * -128 do not fit int16.
    """
    filled = np.pad(flat, ((0, 0), (0, -flat.shape[1] % 16)))
    return bool((filled.reshape(len(flat), -1, 2, 8) == -128).all(axis=2).any())


def depthwise_weights(view: LayerView) -> np.ndarray:
    """Return int16 [ky, kx, channels] weights minus their zero point."""
    op = view.op
    taps = view.constant("weights").astype(np.int16) - np.int16(op.weight_zero_point)
    return weight_rows(view, taps).T.reshape(*op.kernel, op.out_channels)


def depthwise_channels(view: LayerView, input_zero_point: int) -> np.ndarray:
    """Return int32 [3, channels]: bias with zero point, multiplier, shift for the mode."""
    op = view.op
    weights = depthwise_weights(view).reshape(-1, op.out_channels).T
    channels = generic.channels(view, weights, 0, input_zero_point).T.copy()
    if op.rounds_once:
        channels[2] -= 31
    return channels
