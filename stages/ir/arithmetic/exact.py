"""Integer convolution, pooling and random numbers in NumPy, bit-exact on every machine.

The zoo is calibrated with them. Activations (minus their zero point) and weights are integers in float32 arrays, so
that BLAS can multiply them. As long as no sum exceeds 2**24, the result does not depend on the order of the additions,
which differs between machines. So scales computed from such sums, and every byte of a model, are the same everywhere.
Arrays are NHWC with any batch.
"""

from __future__ import annotations

import hashlib

from stages.ir.arithmetic.sliding import places, same_padding, tapped
from stages.ir.arrays import Array
from stages.support.lazy import np, npt

Pair = tuple[int, int]

# 255 (an activation minus its zero point) * 127 (a weight) * 512 < 2**24: float32 holds such sums exactly.
_EXACT_DEPTH = 512


def random_bytes(seed: int, name: str, count: int) -> npt.NDArray[np.uint8]:
    """Return `count` uniform bytes that depend only on the seed and the name.

    PCG64's raw stream, which NumPy keeps stable.
    """
    key = int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:16], "little")
    words = np.random.PCG64(key).random_raw(-(-count // 8))
    return np.frombuffer(np.asarray(words, dtype="<u8").tobytes(), dtype=np.uint8)[:count]


def random_weights(
    seed: int, name: str, shape: tuple[int, ...], axis: int | None, bits: int = 8
) -> npt.NDArray[np.int8]:
    """Return bell-shaped int8 weights; the largest of each channel is +-127.

    axis  axis of the output channels; None scales all weights together
    bits  if below 8, the largest weight is 2^(bits - 1) - 1

    The distribution is the sum of three uniform bytes.
    """
    count = int(np.prod(shape))
    parts = random_bytes(seed, name, 3 * count).reshape(3, *shape).astype(np.int16)
    bell = (2 * parts.sum(axis=0, dtype=np.int16) - 765).astype(np.float32)  # odd, so no channel is all zeros
    others = None if axis is None else tuple(i for i in range(len(shape)) if i != axis)
    largest = np.abs(bell).max(axis=others, keepdims=True)
    quantized: npt.NDArray[np.int8] = np.rint(bell * np.float32(127) / largest).astype(np.int8)
    if bits == 8:
        return quantized
    return np.asarray(np.rint(quantized * np.float32(((1 << bits - 1) - 1) / 127)), np.int8)


def windows(x: Array, kernel: Pair, stride: Pair, padding: str, fill: float = 0.0) -> list[Array]:
    """Return for each tap of the kernel, row by row, its view [N, OH, OW, C] of the input.

    The input is padded with `fill`.
    """
    same = padding == "same"
    height, width = (places(x.shape[1 + i], kernel[i], stride[i], 1, same=same) for i in (0, 1))
    if same:
        pads = [same_padding(x.shape[1 + i], kernel[i], stride[i], 1) for i in (0, 1)]
        if any(sum(pair) for pair in pads):
            x = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=fill)
    return tapped(x, kernel, stride, (1, 1), (height, width))


def matmul(x: Array, weights: Array) -> npt.NDArray[np.float64]:
    """Return x [rows, depth] times weights [units, depth] transposed, exact in float64."""
    total = np.zeros((x.shape[0], weights.shape[0]))
    for start in range(0, x.shape[1], _EXACT_DEPTH):
        part = slice(start, start + _EXACT_DEPTH)
        total += np.ascontiguousarray(x[:, part], dtype=np.float32) @ weights[:, part].astype(np.float32).T
    return total


def conv2d(x: Array, weights: Array, stride: Pair, padding: str) -> npt.NDArray[np.float64]:
    """Return the accumulators [N, OH, OW, O] of a convolution without bias.

    weights  [O, KH, KW, I]
    """
    units, height, width, depth = weights.shape
    taps = windows(x, (height, width), stride, padding)
    shape = taps[0].shape[:3]
    flat = weights.reshape(units, height * width, depth)
    total = np.zeros((int(np.prod(shape)), units))
    step = max(1, _EXACT_DEPTH // depth)  # as many taps at once as stay exact: few large products are fast
    for start in range(0, len(taps), step):
        columns = np.concatenate([tap.reshape(-1, depth) for tap in taps[start : start + step]], axis=1)
        total += matmul(columns, flat[:, start : start + step].reshape(units, -1))
    return total.reshape(*shape, units)


def depthwise_conv2d(x: Array, weights: Array, stride: Pair, padding: str) -> npt.NDArray[np.float64]:
    """Return the accumulators [N, OH, OW, C] of a depthwise convolution without bias.

    weights  [1, KH, KW, C]
    """
    taps = windows(x, weights.shape[1:3], stride, padding)
    total = np.zeros(taps[0].shape, dtype=np.float32)
    for tap, row in zip(taps, weights[0].reshape(-1, weights.shape[3]), strict=True):
        total += tap * row.astype(np.float32)
    return total.astype(np.float64)


def max_pool2d(x: Array, kernel: Pair, stride: Pair, padding: str) -> Array:
    """Return the maximum of each window, without padding."""
    taps = windows(x, kernel, stride, padding, fill=-np.inf)
    result = taps[0].copy()
    for tap in taps[1:]:
        np.maximum(result, tap, out=result)
    return result


def avg_pool2d(x: Array, kernel: Pair, stride: Pair, padding: str) -> Array:
    """Return the rounded mean of each window, without padding."""
    total = sum(tap.astype(np.float32) for tap in windows(x, kernel, stride, padding))
    count = sum(windows(np.ones((1, *x.shape[1:3], 1), np.float32), kernel, stride, padding))
    return np.rint(total / count).astype(np.float32)
