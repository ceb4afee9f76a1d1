"""NE16's arithmetic in numpy, from the 24 words and the bytes of L1: the reference of the simulated device.

Written from the engine's published behaviour: sums are int32 and wrap, scaled values lose what is above their width,
shifts floor, outputs saturate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.accelerators.ne16.extension import (
    BLOCK_BYTES,
    LEFT_SHIFT,
    RESIDUAL_BLOCK_BYTES,
    Parameters,
    Residual,
)
from stages.accelerators.ne16.job import ADDRESS_SPACE, SUBTILE_KI, SUBTILE_PIXELS
from stages.accelerators.ne16.words import (
    BIAS,
    LINEAR,
    NORMALIZE,
    RESIDUAL,
    ROUNDS_ONCE,
    SHIFTS,
    SIGNED,
    SIGNED_INPUT,
    SIXTEEN_BITS,
    STREAM_IN,
    STRIDE_2,
    TFLITE,
    Task,
    task,
)
from stages.arithmetic.fixed_point import multiply_by_quantized_multiplier, wrap

L1 = 0x1000_0000
Array = npt.NDArray[Any]


class L1Memory:
    """Bytes of L1 by their addresses. Raises ValueError outside of it."""

    def __init__(self, content: bytearray | Array, base: int) -> None:
        self.bytes: Array = content if isinstance(content, np.ndarray) else np.frombuffer(content, np.uint8)
        self.base = base

    def load(self, addresses: Array, dtype: str) -> Array:
        """The numbers of a type at addresses, as int64."""
        size = np.dtype(dtype).itemsize
        found = self.bytes[self._indices(addresses, size)]
        return np.ascontiguousarray(found).view(f"<{np.dtype(dtype).str[1:]}")[..., 0].astype(np.int64)

    def store(self, addresses: Array, values: Array, size: int) -> None:
        """The low `size` bytes of values."""
        each = values[..., np.newaxis] >> 8 * np.arange(size) & 0xFF
        self.bytes[self._indices(addresses, size)] = each.astype(np.uint8)

    def _indices(self, addresses: Array, size: int) -> Array:
        found = (addresses[..., np.newaxis] + np.arange(size)) % ADDRESS_SPACE - self.base
        if found.size and not (found.min() >= 0 and found.max() < len(self.bytes)):
            raise ValueError(f"bytes outside of L1, at {int(found.min()) + self.base:#x} or above")
        return found


def run(raw: Sequence[int], memory: bytearray | Array, base: int = L1) -> None:
    """Compute a job by its 24 words over L1, whose first byte is at `base`.

    Raises ValueError for bytes outside, and for 16-bit activations and the linear mode, which nobody uses.
    """
    job, l1 = task(raw), L1Memory(memory, base)
    if job.flag(SIXTEEN_BITS | LINEAR):
        raise ValueError("16-bit activations and the linear mode are not modelled")
    (rows, last_rows), (columns, last_columns) = job.rows, job.columns
    weights = _weights(job, l1)
    # All is read before anything is written, as the device's results appear when it is done.
    results = []
    for i in range(rows):
        for j in range(columns):
            height = last_rows if i == rows - 1 else SUBTILE_PIXELS
            width = last_columns if j == columns - 1 else SUBTILE_PIXELS
            patch = _patch(job, l1, i, j)[: height + job.kernel - 1, : width + job.kernel - 1]
            results.append(_subtile(job, l1, weights, patch, i, j))
    for addresses, values in results:
        l1.store(addresses, values, job.output_bits // 8)


def _subtile(job: Task, l1: L1Memory, weights: Array, patch: Array, i: int, j: int) -> tuple[Array, Array]:
    """Addresses and values of the outputs of subtile (i, j), indexed row, column, channel."""
    sums = _sums(job, weights, patch)
    step = 2 if job.flag(STRIDE_2) else 1
    y = (np.arange(sums.shape[0]) + SUBTILE_PIXELS * i)[::step, np.newaxis, np.newaxis]
    x = (np.arange(sums.shape[1]) + SUBTILE_PIXELS * j)[::step, np.newaxis]
    sums = sums[::step, ::step]
    pixels = y * job.word("outfeat_d2_stride") + x * job.word("outfeat_d1_stride")
    channel = np.arange(sums.shape[2])
    addresses = job.word("outfeat_ptr") + pixels + channel * (job.output_bits // 8)
    if job.flag(STREAM_IN):
        # A subtile of channels begins where its outputs do; inside of it values are 4 bytes apart.
        within = channel % job.channel_tile
        sums = sums + l1.load(addresses - within * (job.output_bits // 8) + within * 4, "i4")
    values = _normalized(job, l1, wrap(sums))
    if job.flag(RESIDUAL):
        values = _with_residual(job, l1, values, job.word("residual_ptr") + pixels + channel)
    return addresses, values


def _patch(job: Task, l1: L1Memory, i: int, j: int) -> Array:
    """The input of subtile (i, j): 5x5 (1x1: 3x3) pixels of all channels, padding in place."""
    size = SUBTILE_PIXELS + job.kernel - 1
    last_row, last_column = i == job.rows[0] - 1, j == job.columns[0] - 1
    height = job.patch[0] if last_row else size
    width = job.patch[1] if last_column else size
    pad = job.padding
    index = np.arange(size)
    padded_rows = (index < pad.top) & (i == 0) | (index >= size - pad.bottom) & last_row
    padded_columns = (index < pad.left) & (j == 0) | (index >= size - pad.right) & last_column
    padded = padded_rows[:, np.newaxis] | padded_columns
    zero = (index >= height)[:, np.newaxis] | (index >= width)
    # What no output reads is not read.
    used = (index < (job.rows[1] if last_row else 3) + job.kernel - 1)[:, np.newaxis] & (
        index < (job.columns[1] if last_column else 3) + job.kernel - 1
    )
    channels = (job.ki[0] - 1) * SUBTILE_KI + job.ki[1] if not job.depthwise else _channels(job)
    found = np.zeros((size, size, channels), np.int64)
    found[padded] = job.pad_value
    found[zero] = 0
    y, x = np.nonzero(used & ~padded & ~zero)
    start = (
        job.word("infeat_ptr") + (3 * i + y) * job.word("infeat_d1_stride") + (3 * j + x) * job.word("infeat_d0_stride")
    )
    found[y, x] = l1.load(start[:, np.newaxis] + np.arange(channels), "i1" if job.flag(SIGNED_INPUT) else "u1")
    return found


def _channels(job: Task) -> int:
    """Output channels."""
    return (job.ko[0] - 1) * job.channel_tile + job.ko[1]


def _weights(job: Task, l1: L1Memory) -> Array:
    """Weights with their offset, (taps, ki, ko), depthwise (taps, channels); 0 where the filter is masked."""
    taps, bits = job.kernel**2, job.weight_bits
    tiles, last = job.ko if job.depthwise else job.ki
    outputs = 1 if job.depthwise else _channels(job)
    d0, d1 = job.word("weights_d0_stride"), job.word("weights_d1_stride")
    plane = d0 if job.kernel == 3 else 2
    tile = d0 * bits if job.kernel == 3 else d0
    o, t, b, f, byte = np.ix_(*map(np.arange, (outputs, tiles, bits, taps, 2)))
    stored = l1.load(job.word("weights_ptr") + o * d1 + t * tile + b * plane + f * 2 + byte, "u1")
    each_bit = np.unpackbits(stored.astype(np.uint8), axis=-1, bitorder="little").astype(np.int64)
    values = (each_bit << np.arange(bits)[:, np.newaxis, np.newaxis]).sum(axis=2) + job.weight_offset
    values[:, :, ~_taps_on(job)] = 0
    found = values.transpose(2, 1, 3, 0).reshape(taps, tiles * SUBTILE_KI, outputs)
    found = found[:, : (tiles - 1) * SUBTILE_KI + last]
    return found[:, :, 0] if job.depthwise else found


def _taps_on(job: Task) -> Array:
    size, mask = job.kernel, job.filter_mask
    index = np.arange(size)
    rows = (index >= mask.top) & (index < size - mask.bottom)
    columns = (index >= mask.left) & (index < size - mask.right)
    return (rows[:, np.newaxis] & columns).reshape(-1)


def _sums(job: Task, weights: Array, patch: Array) -> Array:
    height, width = (n - job.kernel + 1 for n in patch.shape[:2])
    total = np.zeros((height, width, _channels(job)), np.int64)
    for tap in range(job.kernel**2):
        ky, kx = divmod(tap, job.kernel)
        pixels = patch[ky : ky + height, kx : kx + width]
        total += pixels * weights[tap] if job.depthwise else pixels @ weights[tap]
    return total


def _normalized(job: Task, l1: L1Memory, sums: Array) -> Array:
    if not job.flag(NORMALIZE):
        return sums
    channel = np.arange(sums.shape[2])
    tflite = job.flag(TFLITE)
    scale = l1.load(
        job.word("scale_ptr") + channel * (job.scale_bits // 8), f"{'i' if tflite else 'u'}{job.scale_bits // 8}"
    )
    shift = l1.load(job.word("scale_shift_ptr") + channel, "i1") if job.flag(SHIFTS) else np.full(1, job.shift)
    bias = l1.load(job.word("scale_bias_ptr") + channel * 4, "i4") if job.flag(BIAS) else None
    if tflite:
        given = _parameters(job, l1)
        return _requantize(wrap(sums + (0 if bias is None else bias)), scale, shift, job.flag(ROUNDS_ONCE), given)
    product = _low_bits(sums, scale, 32 if bias is not None else 48)
    if bias is not None:
        product = wrap(product + bias)
    return _saturated(job, product >> (shift & 63), bool(job.flag(SHIFTS) or job.shift))


def _low_bits(sums: Array, scale: Array, bits: int) -> Array:
    """The low bits of the product, as a signed number. The product has up to 64 bits."""
    with np.errstate(over="ignore"):
        product = (sums.astype(np.uint64) * scale.astype(np.uint64)).astype(np.int64)
    return product << 64 - bits >> 64 - bits


def _saturated(job: Task, values: Array, shifted: bool) -> Array:
    bits, signed = job.output_bits, job.flag(SIGNED)
    if bits == 32:
        if not signed:
            return np.maximum(values, 0)
        return np.clip(values, -(2**31), 2**31 - 1) if shifted else wrap(values)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return np.clip(values, low, high)


def _parameters(job: Task, l1: L1Memory) -> Parameters:
    size = RESIDUAL_BLOCK_BYTES if job.flag(RESIDUAL) else BLOCK_BYTES
    block = l1.load(job.word("parameters_ptr") + np.arange(0, size, 4), "i4")
    return _block(block.tolist())


def _with_residual(job: Task, l1: L1Memory, values: Array, addresses: Array) -> Array:
    other = l1.load(addresses, "i1" if job.flag(SIGNED) else "u1")
    return _add(values, other, _parameters(job, l1))


def _block(values: Sequence[int]) -> Parameters:
    """The block by its 3 or 13 numbers."""
    zero_point, minimum, maximum, *rest = values
    return Parameters(zero_point, minimum, maximum, Residual(*rest) if rest else None)


def _requantize(sums: Array, multiplier: Array, shift: Array, rounds_once: bool, given: Parameters) -> Array:
    """int32 sums (bias added), channels last, as 8-bit values."""
    scaled = multiply_by_quantized_multiplier(sums, multiplier, shift, "single" if rounds_once else "double")
    return np.clip(scaled + given.zero_point, given.minimum, given.maximum)


def _add(values: Array, other: Array, given: Parameters) -> Array:
    """TFLite's ADD of requantized values and residual ones."""
    by = given.residual
    assert by is not None
    own = (values - given.zero_point) << LEFT_SHIFT
    theirs = (other.astype(np.int64) - by.zero_point) << LEFT_SHIFT
    total = multiply_by_quantized_multiplier(own, by.own_multiplier, by.own_shift, "double")
    total = total + multiply_by_quantized_multiplier(theirs, by.multiplier, by.shift, "double")
    scaled = multiply_by_quantized_multiplier(total, by.total_multiplier, by.total_shift, "double")
    return np.clip(scaled + by.output_zero_point, by.minimum, by.maximum)
