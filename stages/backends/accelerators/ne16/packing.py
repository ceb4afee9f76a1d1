"""Pack weights for NE16: bit planes of 16 input channels.

A stored weight is u = w - offset, without sign. 16 input channels at one tap are two bytes for each bit, channel i in
bit i % 8 of byte i / 8. Their order, outermost first: output channel, 16 input channels, bit, tap, byte. In a depthwise
convolution the channels take the place of the input channels, and there is one output channel.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from stages.backends.accelerators.ne16.job import SUBTILE_KI, Mode


def pack(weights: npt.NDArray[Any], mode: Mode, bits: int, offset: int) -> bytes:
    """Return the bytes of integer weights, OHWI or (depthwise) HWC.

    Raises ValueError for a shape that does not fit the mode, and for weights outside of offset … offset + 2^bits - 1.
    """
    taps = (1, 1) if mode == "conv1x1" else (3, 3)
    planes = weights[np.newaxis] if mode == "depthwise3x3" else weights
    if planes.ndim != 4 or planes.shape[1:3] != taps:
        raise ValueError(f"{mode} has no weights of shape {'x'.join(map(str, weights.shape))}")
    stored = planes.astype(np.int64) - offset
    if stored.size and not (stored.min() >= 0 and stored.max() < 1 << bits):
        message = f"weights {planes.min()} to {planes.max()} do not fit {bits} bits from {offset} on"
        raise ValueError(message)
    ko, ki = stored.shape[0], stored.shape[3]
    tiles = -(-ki // SUBTILE_KI)
    padded = np.zeros((ko, taps[0] * taps[1], tiles * SUBTILE_KI), np.int64)
    padded[:, :, :ki] = stored.reshape(ko, -1, ki)
    by_tile = padded.reshape(ko, -1, tiles, SUBTILE_KI).transpose(0, 2, 1, 3)  # ko, tile, tap, channel
    each_bit = by_tile[:, :, np.newaxis] >> np.arange(bits)[:, np.newaxis, np.newaxis] & 1
    return np.packbits(each_bit.astype(np.uint8), axis=-1, bitorder="little").tobytes()


def packed_bytes(mode: Mode, ki: int, ko: int, bits: int) -> int:
    """Return the size of `pack`. ki = ko are the channels of a depthwise convolution."""
    tiles = -(-ki // SUBTILE_KI)
    taps = 1 if mode == "conv1x1" else 9
    return (1 if mode == "depthwise3x3" else ko) * tiles * bits * taps * 2
