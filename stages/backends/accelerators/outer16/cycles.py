"""Cycles of an outer16 job in closed form, as in `device/outer16.cc`.

The engine has 16x16 sums: 16 consecutive output pixels by 16 output channels. For each tap of the window and each block
of 16 input channels it takes 16 cycles. In each cycle it reads 16 bytes of pixels and 16 weights, and adds a 16x16
outer product. Then it requantizes the sums and writes one pixel per cycle. A depthwise convolution reads only the block
of its channels.

    begin 20 + for each block of output channels: parameters 12 + for each 16 pixels: 16 * taps * input blocks + 16
"""

from dataclasses import dataclass

BLOCK = 16
_BEGIN = 20
_PARAMETER_BYTES = 3 * 4 * BLOCK  # bias, multiplier and shift of each channel
_PORT = 16  # bytes in a cycle


@dataclass(frozen=True)
class Work:
    """One job: pixels and channels of the output, taps of the window, channels of the input."""

    pixels: int
    channels: int
    taps: int
    inputs: int
    depthwise: bool

    @property
    def products(self) -> int:
        """Input blocks, one per tap, that an output block needs."""
        return self.taps * (1 if self.depthwise else blocks(self.inputs))

    @property
    def constant_bytes(self) -> int:
        """Bytes of parameters and weights, including padding of blocks."""
        weights = self.products * BLOCK * (1 if self.depthwise else BLOCK)
        return blocks(self.channels) * (_PARAMETER_BYTES + weights)


def blocks(channels: int) -> int:
    """Return the number of blocks for `channels` channels."""
    return -(-channels // BLOCK)


def cycles(work: Work) -> int:
    """Return the engine's cycles from the start of the job."""
    strips = -(-work.pixels // BLOCK)
    block_cycles = _PARAMETER_BYTES // _PORT + strips * (BLOCK * work.products + BLOCK)
    return _BEGIN + blocks(work.channels) * block_cycles
